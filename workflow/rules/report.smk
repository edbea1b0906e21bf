rule report:
    input:
        rules.publish.output,
    output:
        page=report(
            f"{RESULTS}/{{study}}/report.html",
            caption="../report/study.rst",
            category="Studies",
            labels={"study": "{study}"},
        ),
        aggregate=f"{RESULTS}/{{study}}/aggregate.nc",
        figures=directory(f"{RESULTS}/{{study}}/figures"),
    log:
        f"{LOGS}/{{study}}/report.log",
    benchmark:
        f"{LOGS}/{{study}}/report.tsv"
    conda:
        "../envs/hdica.yaml"
    params:
        store=store,
    message:
        "Writing the report of study {wildcards.study}"
    script:
        "../scripts/report.py"

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
        card=f"{RESULTS}/{{study}}/card.json",
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


# Reports enter the gallery as they are written; this makes it where it was lost, and waits for all of them.
rule gallery:
    input:
        expand(rules.report.output.card, study=STUDIES),
    output:
        INDEX,
    log:
        f"{LOGS}/gallery.log",
    conda:
        "../envs/hdica.yaml"
    message:
        "Making the gallery of reports {output}"
    script:
        "../scripts/gallery.py"

rule report:
    input:
        rules.publish.output,
    output:
        page=f"{RESULTS}/{{study}}/report.html",
        aggregate=f"{RESULTS}/{{study}}/aggregate.nc",
        card=f"{RESULTS}/{{study}}/card.json",
        # In Snakemake's report: the figures; pages share a script that would be missing there.
        figures=report(
            directory(f"{RESULTS}/{{study}}/figures"),
            patterns=["{figure}.svg"],
            caption="../report/figure.rst",
            category=system,
            subcategory="{study}",
            labels=figure_labels,
        ),
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

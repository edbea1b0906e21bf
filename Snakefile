# `snakemake --cores` builds every study of config/config.yaml and its report, `snakemake --cores reproduce` the papers'
# figures at the papers' own sizes; `snakemake -n` shows the plan.
# The target rule stands here, because a Snakefile that only includes others builds nothing, silently.
from snakemake.utils import min_version, validate

min_version("9.0")


configfile: "config/config.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"


# The first rule, and not marked as the target: a Snakefile that imports this one may have a target of its own.
rule all:
    input:
        targets(STUDIES),
        INDEX,


include: "workflow/rules/sweep.smk"
include: "workflow/rules/report.smk"


localrules:
    gallery,


rule reproduce:
    input:
        # A function, so that the papers' studies are read only when they are asked for.
        lambda wildcards: targets(FIGURES),


onsuccess:
    # `make run`, which asks for quiet, says it itself, also where nothing was left to do.
    if Path(INDEX).exists() and not workflow.output_settings.quiet:
        print(f"reports: {INDEX}", file=sys.stderr)

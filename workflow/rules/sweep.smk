# shard (one or more) -> publish. The working store is a parameter and never an output, because Snakemake deletes the
# outputs of a failed job; what it tracks is a small JSON written last. Each shard first lays out what the study asks
# for, under the store's lock, so a shard finds the others' points where they are.


wildcard_constraints:
    study="[a-z][a-z0-9_]*",
    shard=r"\d+",


rule shard:
    output:
        f"{RESULTS}/{{study}}.shards/{{shard}}-of-{SHARDS}.json",
    log:
        f"{LOGS}/{{study}}/shard-{{shard}}-of-{SHARDS}.log",
    benchmark:
        f"{LOGS}/{{study}}/shard-{{shard}}-of-{SHARDS}.tsv"
    conda:
        "../envs/hdica.yaml"
    threads: THREADS
    resources:
        **shard_resources(),
    params:
        content=content_hash,
        shards=SHARDS,
        store=store,
        study=study_file,
    message:
        "Computing study {wildcards.study}, shard {wildcards.shard}, on {threads} cores (progress: {log})"
    script:
        "../scripts/shard.py"


rule publish:
    input:
        collect(rules.shard.output, shard=range(SHARDS), allow_missing=True),
    output:
        f"{RESULTS}/{{study}}.manifest.json",
    log:
        f"{LOGS}/{{study}}/publish.log",
    benchmark:
        f"{LOGS}/{{study}}/publish.tsv"
    conda:
        "../envs/hdica.yaml"
    params:
        everything=full_hash,
        store=store,
        study=study_file,
    message:
        "Publishing study {wildcards.study} as {params.store}"
    script:
        "../scripts/publish.py"

"""Where blocks are computed: processes, Dask schedulers, Slurm jobs."""

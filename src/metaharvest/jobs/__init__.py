"""Jobs of workers: rows that a worker claims for a limited time. This room writes job, job_event and worker."""

"""Workers of many machines: their processes, and the messages over RabbitMQ that wake them, with Celery.

    broker.py   the Celery application, and the message that wakes all workers
    worker.py   one worker process
    beat.py     the application for `celery beat`, which may replace cron for the coordinator

A message is only a hint: a worker claims rows in the database. It is received at once and never waits for work, so that
no time limit of the broker matters, and a lost or doubled message changes nothing but the time.
"""

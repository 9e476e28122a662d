-- The tables of metaharvest on mariadb, for reading: `metaharvest init` creates and upgrades them.

CREATE TABLE catalogue_counter (
	counter_id BIGINT NOT NULL, 
	change_seq BIGINT NOT NULL, 
	changed_at DATETIME(6) NOT NULL, 
	CONSTRAINT pk_catalogue_counter PRIMARY KEY (counter_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE catalogue_document (
	catalogue_document_id BIGINT NOT NULL, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	item_identifier VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	origin VARCHAR(200), 
	document_type VARCHAR(255) NOT NULL, 
	revision BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	title VARCHAR(300) NOT NULL, 
	site_schedule_id BIGINT, 
	deleted BOOL NOT NULL, 
	changed_at DATETIME(6) NOT NULL, 
	change_seq BIGINT NOT NULL, 
	CONSTRAINT pk_catalogue_document PRIMARY KEY (catalogue_document_id), 
	CONSTRAINT uq_catalogue_document_document_id UNIQUE (document_id), 
	CONSTRAINT uq_catalogue_document_change_seq UNIQUE (change_seq)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_catalogue_document_changed ON catalogue_document (changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_item ON catalogue_document (item_identifier, origin);

CREATE INDEX ix_catalogue_document_origin ON catalogue_document (origin, changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_site ON catalogue_document (site_schedule_id, changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_type ON catalogue_document (document_type, changed_at, catalogue_document_id);

CREATE TABLE catalogue_set (
	catalogue_set_id BIGINT NOT NULL AUTO_INCREMENT, 
	catalogue_document_id BIGINT NOT NULL, 
	set_spec VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	CONSTRAINT pk_catalogue_set PRIMARY KEY (catalogue_set_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_catalogue_set_catalogue_document_id ON catalogue_set (catalogue_document_id);

CREATE INDEX ix_catalogue_set_spec ON catalogue_set (set_spec, catalogue_document_id);

CREATE TABLE document_origin (
	document_origin_id BIGINT NOT NULL AUTO_INCREMENT, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	revision BIGINT NOT NULL, 
	base_url LONGTEXT NOT NULL, 
	identifier LONGTEXT NOT NULL, 
	prefix LONGTEXT NOT NULL, 
	datestamp VARCHAR(40) NOT NULL, 
	response_date VARCHAR(40) NOT NULL, 
	namespace LONGTEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	altered BOOL NOT NULL, 
	sets LONGTEXT NOT NULL, 
	about LONGTEXT NOT NULL, 
	received LONGBLOB, 
	CONSTRAINT pk_document_origin PRIMARY KEY (document_origin_id), 
	CONSTRAINT uq_document_origin UNIQUE (document_id, revision)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE document_owner (
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	CONSTRAINT pk_document_owner PRIMARY KEY (document_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_document_owner_site_schedule_id ON document_owner (site_schedule_id);

CREATE TABLE document_revision (
	document_revision_id BIGINT NOT NULL AUTO_INCREMENT, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	revision BIGINT NOT NULL, 
	document_type LONGTEXT NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	source_url LONGTEXT NOT NULL, 
	site_schedule_id BIGINT, 
	inserted_at DATETIME(6) NOT NULL, 
	content LONGBLOB NOT NULL, 
	CONSTRAINT pk_document_revision PRIMARY KEY (document_revision_id), 
	CONSTRAINT uq_document_revision UNIQUE (document_id, revision)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE document_tombstone (
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	revision BIGINT NOT NULL, 
	site_schedule_id BIGINT, 
	datestamp VARCHAR(40) NOT NULL, 
	deleted_at DATETIME(6) NOT NULL, 
	CONSTRAINT pk_document_tombstone PRIMARY KEY (document_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE document_transfer (
	transfer_id BIGINT NOT NULL AUTO_INCREMENT, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	from_site_id BIGINT, 
	from_site VARCHAR(100), 
	to_site_id BIGINT, 
	to_site VARCHAR(100) NOT NULL, 
	transferred_on DATE NOT NULL, 
	transferred_at DATETIME(6) NOT NULL, 
	transferred_by VARCHAR(255) NOT NULL, 
	run_id BIGINT, 
	message LONGTEXT NOT NULL, 
	CONSTRAINT pk_document_transfer PRIMARY KEY (transfer_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_document_transfer_document_id ON document_transfer (document_id);

CREATE TABLE document_withdrawal (
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	reason LONGTEXT NOT NULL, 
	site VARCHAR(100), 
	withdrawn_on DATE NOT NULL, 
	withdrawn_at DATETIME(6) NOT NULL, 
	withdrawn_by VARCHAR(255) NOT NULL, 
	erased BOOL NOT NULL, 
	CONSTRAINT pk_document_withdrawal PRIMARY KEY (document_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE folder_marker (
	path_sha256 VARCHAR(64) NOT NULL, 
	path LONGTEXT NOT NULL, 
	folder_id VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_folder_marker PRIMARY KEY (path_sha256)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE harvest_document (
	harvest_document_id BIGINT NOT NULL AUTO_INCREMENT, 
	site_schedule_id BIGINT NOT NULL, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, 
	revision BIGINT NOT NULL, 
	document_url LONGTEXT NOT NULL, 
	document_type LONGTEXT NOT NULL, 
	target_revision BIGINT, 
	outcome VARCHAR(16), 
	sha256 VARCHAR(64), 
	etag VARCHAR(100), 
	last_modified VARCHAR(100), 
	looked_at DATE, 
	failing_since DATE, 
	attempts INTEGER NOT NULL DEFAULT '0', 
	next_attempt DATE, 
	pending_run BIGINT, 
	pending_sha256 VARCHAR(64), 
	digest VARCHAR(64), 
	datestamp VARCHAR(40), 
	listing BIGINT, 
	to_delete BOOL NOT NULL DEFAULT false, 
	missing_since DATE, 
	title VARCHAR(300), 
	state VARCHAR(16) NOT NULL DEFAULT 'failed', 
	CONSTRAINT pk_harvest_document PRIMARY KEY (harvest_document_id), 
	CONSTRAINT uq_harvest_document UNIQUE (site_schedule_id, document_id, revision)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_harvest_document_look ON harvest_document (site_schedule_id, looked_at);

CREATE INDEX ix_harvest_document_retry ON harvest_document (next_attempt, site_schedule_id);

CREATE TABLE harvest_operation (
	harvest_operation_code VARCHAR(64) NOT NULL, 
	explanation VARCHAR(255) NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_harvest_operation PRIMARY KEY (harvest_operation_code)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE harvest_run (
	run_id BIGINT NOT NULL AUTO_INCREMENT, 
	harvest_date DATE NOT NULL, 
	started_at DATETIME(6) NOT NULL, 
	ended_at DATETIME(6), 
	status VARCHAR(16) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	heartbeat_at DATETIME(6) NOT NULL, 
	CONSTRAINT pk_harvest_run PRIMARY KEY (run_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_harvest_run_status ON harvest_run (status);

CREATE TABLE harvest_site_schedule (
	site_schedule_id BIGINT NOT NULL AUTO_INCREMENT, 
	name VARCHAR(100) NOT NULL, 
	source_kind VARCHAR(32) NOT NULL DEFAULT 'harvest-list', 
	documentlisturl LONGTEXT NOT NULL, 
	ldapdn VARCHAR(255), 
	ldappwd VARCHAR(255), 
	datenextharvest DATE, 
	datelastharvest DATE, 
	updatefrequency INTEGER DEFAULT '1', 
	unit VARCHAR(50) DEFAULT 'days', 
	day_of_month INTEGER, 
	contact_email LONGTEXT, 
	notify VARCHAR(16) NOT NULL DEFAULT 'always', 
	enabled BOOL NOT NULL DEFAULT true, 
	options LONGTEXT, 
	list_etag LONGTEXT, 
	list_last_modified VARCHAR(100), 
	list_sha256 VARCHAR(64), 
	CONSTRAINT pk_harvest_site_schedule PRIMARY KEY (site_schedule_id), 
	CONSTRAINT uq_harvest_site_schedule_name UNIQUE (name)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE site_checkpoint (
	site_schedule_id BIGINT NOT NULL, 
	checkpoint LONGTEXT, 
	listing BIGINT NOT NULL DEFAULT '0', 
	site_run_id BIGINT, 
	unchanged BIGINT NOT NULL DEFAULT '0', 
	duplicate BIGINT NOT NULL DEFAULT '0', 
	confirmed BIGINT NOT NULL DEFAULT '0', 
	treatment VARCHAR(64), 
	rechecks BOOL NOT NULL DEFAULT false, 
	moved BIGINT NOT NULL DEFAULT '0', 
	full_wanted BOOL NOT NULL DEFAULT false, 
	kind VARCHAR(8), 
	windows LONGTEXT, 
	token LONGTEXT, 
	received BIGINT, 
	announced BIGINT, 
	CONSTRAINT pk_site_checkpoint PRIMARY KEY (site_schedule_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE site_problem (
	site_problem_id BIGINT NOT NULL AUTO_INCREMENT, 
	site_schedule_id BIGINT NOT NULL, 
	fingerprint VARCHAR(32) NOT NULL, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin, 
	rule VARCHAR(64) NOT NULL, 
	needs_attention BOOL NOT NULL, 
	detail_log_id BIGINT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	first_seen DATE NOT NULL, 
	first_site_run BIGINT NOT NULL, 
	last_seen DATE NOT NULL, 
	last_site_run BIGINT NOT NULL, 
	nights INTEGER NOT NULL, 
	ended_on DATE, 
	ended_site_run BIGINT, 
	CONSTRAINT pk_site_problem PRIMARY KEY (site_problem_id), 
	CONSTRAINT uq_site_problem UNIQUE (site_schedule_id, fingerprint)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_site_problem_ended_site_run ON site_problem (ended_site_run);

CREATE INDEX ix_site_problem_state ON site_problem (site_schedule_id, state);

CREATE TABLE harvest_site_run (
	site_run_id BIGINT NOT NULL AUTO_INCREMENT, 
	run_id BIGINT NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	site_name VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	rehearsal BOOL NOT NULL DEFAULT false, 
	status VARCHAR(16) NOT NULL, 
	started_at DATETIME(6) NOT NULL, 
	ended_at DATETIME(6), 
	failure_reason LONGTEXT, 
	list_url LONGTEXT, 
	listed BIGINT NOT NULL, 
	inserted BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	unchanged BIGINT NOT NULL, 
	deleted BIGINT NOT NULL DEFAULT '0', 
	filtered BIGINT NOT NULL DEFAULT '0', 
	stale BIGINT NOT NULL, 
	duplicate BIGINT NOT NULL, 
	deferred BIGINT NOT NULL, 
	access_error BIGINT NOT NULL, 
	invalid BIGINT NOT NULL, 
	upload_error BIGINT NOT NULL, 
	warnings BIGINT NOT NULL, 
	next_harvest DATE, 
	server_seconds DOUBLE, 
	waiting_seconds DOUBLE, 
	checking_seconds DOUBLE, 
	storing_seconds DOUBLE, 
	CONSTRAINT pk_harvest_site_run PRIMARY KEY (site_run_id), 
	CONSTRAINT fk_harvest_site_run_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_harvest_site_run_run_id ON harvest_site_run (run_id);

CREATE INDEX ix_harvest_site_run_site_name ON harvest_site_run (site_name);

CREATE INDEX ix_harvest_site_run_site_schedule_id ON harvest_site_run (site_schedule_id);

CREATE INDEX ix_harvest_site_run_status ON harvest_site_run (status);

CREATE TABLE harvest_log (
	harvest_log_id BIGINT NOT NULL AUTO_INCREMENT, 
	harvest_date DATE NOT NULL, 
	logged_at DATETIME(6) NOT NULL, 
	status INTEGER NOT NULL, 
	message LONGTEXT NOT NULL, 
	harvest_operation_code VARCHAR(64) NOT NULL, 
	site_schedule_id BIGINT, 
	site_run_id BIGINT, 
	run_id BIGINT NOT NULL, 
	document_id VARCHAR(800) CHARACTER SET ascii COLLATE ascii_bin, 
	revision BIGINT, 
	document_url LONGTEXT, 
	outcome VARCHAR(16), 
	target_revision BIGINT, 
	seconds DOUBLE, 
	size BIGINT, 
	CONSTRAINT pk_harvest_log PRIMARY KEY (harvest_log_id), 
	CONSTRAINT fk_harvest_log_harvest_operation_code FOREIGN KEY(harvest_operation_code) REFERENCES harvest_operation (harvest_operation_code), 
	CONSTRAINT fk_harvest_log_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id), 
	CONSTRAINT fk_harvest_log_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_harvest_log_harvest_date ON harvest_log (harvest_date);

CREATE INDEX ix_harvest_log_run ON harvest_log (run_id, site_run_id);

CREATE INDEX ix_harvest_log_site_run_document ON harvest_log (site_run_id, document_id);

CREATE TABLE report_outbox (
	report_id BIGINT NOT NULL AUTO_INCREMENT, 
	idempotency_key VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	run_id BIGINT NOT NULL, 
	site_run_id BIGINT, 
	message_id VARCHAR(255) NOT NULL, 
	subject LONGTEXT NOT NULL, 
	content LONGBLOB NOT NULL, 
	created_at DATETIME(6) NOT NULL, 
	CONSTRAINT pk_report_outbox PRIMARY KEY (report_id), 
	CONSTRAINT uq_report_outbox_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT fk_report_outbox_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id), 
	CONSTRAINT fk_report_outbox_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_report_outbox_run_id ON report_outbox (run_id);

CREATE INDEX ix_report_outbox_site_run_id ON report_outbox (site_run_id);

CREATE TABLE harvest_detail_log (
	detail_log_id BIGINT NOT NULL AUTO_INCREMENT, 
	harvest_log_id BIGINT NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	scope LONGTEXT, 
	identifier BIGINT, 
	revision BIGINT, 
	document_id LONGTEXT, 
	document_url LONGTEXT, 
	document_type LONGTEXT, 
	error_message LONGTEXT NOT NULL, 
	rule VARCHAR(64) NOT NULL, 
	line_number BIGINT, 
	column_number BIGINT, 
	xpath LONGTEXT, 
	excerpt LONGTEXT, 
	remedy LONGTEXT, 
	fingerprint VARCHAR(32), 
	CONSTRAINT pk_harvest_detail_log PRIMARY KEY (detail_log_id), 
	CONSTRAINT fk_harvest_detail_log_harvest_log_id FOREIGN KEY(harvest_log_id) REFERENCES harvest_log (harvest_log_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_harvest_detail_log_harvest_log_id ON harvest_detail_log (harvest_log_id);

CREATE TABLE report_delivery (
	delivery_id BIGINT NOT NULL AUTO_INCREMENT, 
	report_id BIGINT NOT NULL, 
	recipient VARCHAR(320) NOT NULL, 
	status VARCHAR(16) NOT NULL DEFAULT 'queued', 
	attempts INTEGER NOT NULL DEFAULT '0', 
	last_error LONGTEXT, 
	last_attempt_at DATETIME(6), 
	first_sent_at DATETIME(6), 
	by_hand BOOL NOT NULL DEFAULT false, 
	CONSTRAINT pk_report_delivery PRIMARY KEY (delivery_id), 
	CONSTRAINT uq_report_delivery UNIQUE (report_id, recipient), 
	CONSTRAINT fk_report_delivery_report_id FOREIGN KEY(report_id) REFERENCES report_outbox (report_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX ix_report_delivery_status ON report_delivery (status);

INSERT INTO harvest_operation VALUES ('HarvesterStartup', 'A run began', 'info');
INSERT INTO harvest_operation VALUES ('HarvesterShutdown', 'A run ended', 'info');
INSERT INTO harvest_operation VALUES ('RunInterrupted', 'A run did not come to its end', 'error');
INSERT INTO harvest_operation VALUES ('SiteError', 'A site could not be harvested at all', 'error');
INSERT INTO harvest_operation VALUES ('TargetError', 'The target stopped answering', 'error');
INSERT INTO harvest_operation VALUES ('GetHarvestListSuccess', 'The harvest list was fetched', 'debug');
INSERT INTO harvest_operation VALUES ('GetHarvestListError', 'The harvest list could not be fetched', 'error');
INSERT INTO harvest_operation VALUES ('ValidateHarvestListSuccess', 'The harvest list is valid', 'debug');
INSERT INTO harvest_operation VALUES ('ValidateHarvestListWarning', 'The harvest list is valid, but doubtful', 'warning');
INSERT INTO harvest_operation VALUES ('ValidateHarvestListError', 'The harvest list is not valid', 'error');
INSERT INTO harvest_operation VALUES ('HarvestListUnchanged', 'The harvest list is the one of the last harvest', 'info');
INSERT INTO harvest_operation VALUES ('GetDocSuccess', 'The document was fetched', 'debug');
INSERT INTO harvest_operation VALUES ('GetDocError', 'The document could not be fetched', 'error');
INSERT INTO harvest_operation VALUES ('ValidateDocSuccess', 'The document is valid', 'debug');
INSERT INTO harvest_operation VALUES ('ValidateDocWarning', 'The document is valid, but doubtful', 'warning');
INSERT INTO harvest_operation VALUES ('ValidateDocError', 'The document is not valid', 'error');
INSERT INTO harvest_operation VALUES ('MetacatHasDoc', 'The target had these documents already', 'info');
INSERT INTO harvest_operation VALUES ('InsertDocSuccess', 'The document was inserted', 'info');
INSERT INTO harvest_operation VALUES ('InsertDocError', 'The document could not be inserted', 'error');
INSERT INTO harvest_operation VALUES ('UpdateDocSuccess', 'The document was updated', 'info');
INSERT INTO harvest_operation VALUES ('UpdateDocError', 'The document could not be updated', 'error');
INSERT INTO harvest_operation VALUES ('IdentifySuccess', 'The repository said what it is', 'debug');
INSERT INTO harvest_operation VALUES ('IdentifyError', 'The repository did not say what it is', 'error');
INSERT INTO harvest_operation VALUES ('RepositoryChanged', 'The repository is not as it was at the last harvest', 'warning');
INSERT INTO harvest_operation VALUES ('ListRecordsSuccess', 'The repository listed its records', 'debug');
INSERT INTO harvest_operation VALUES ('ListRecordsWarning', 'The repository listed its records, but something about them is doubtful', 'warning');
INSERT INTO harvest_operation VALUES ('ListRecordsError', 'The repository did not list its records to the end', 'error');
INSERT INTO harvest_operation VALUES ('DocMissing', 'The repository no longer names documents that it named before', 'warning');
INSERT INTO harvest_operation VALUES ('DocDeleted', 'The document was deleted', 'info');
INSERT INTO harvest_operation VALUES ('DocDeleteError', 'The document could not be deleted', 'error');
INSERT INTO harvest_operation VALUES ('DocFiltered', 'A filter of the site left the document out', 'info');
INSERT INTO harvest_operation VALUES ('DocDeferred', 'The document was put off to a later run', 'warning');
INSERT INTO harvest_operation VALUES ('DocStale', 'The list names a revision below the target''s', 'warning');
INSERT INTO harvest_operation VALUES ('DocDuplicate', 'The list names the same docid again', 'warning');
INSERT INTO harvest_operation VALUES ('UploadUnconfirmed', 'It is not known whether an upload arrived', 'warning');
INSERT INTO harvest_operation VALUES ('ReportQueued', 'A report was put into the outbox', 'info');
INSERT INTO harvest_operation VALUES ('LogPurged', 'Old log rows were deleted', 'info');
INSERT INTO harvest_operation VALUES ('LogNotPurged', 'Old log rows were kept, as the clock may be wrong', 'warning');

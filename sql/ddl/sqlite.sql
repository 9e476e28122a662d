-- The tables of metaharvest on sqlite, for reading: `metaharvest init` creates and upgrades them.

CREATE TABLE catalogue_counter (
	counter_id INTEGER NOT NULL, 
	change_seq BIGINT NOT NULL, 
	changed_at DATETIME NOT NULL, 
	CONSTRAINT pk_catalogue_counter PRIMARY KEY (counter_id)
);

CREATE TABLE catalogue_document (
	catalogue_document_id INTEGER NOT NULL, 
	document_id VARCHAR(800) NOT NULL, 
	item_identifier VARCHAR(800) NOT NULL, 
	origin VARCHAR(200), 
	document_type VARCHAR(255) NOT NULL, 
	revision BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	title VARCHAR(300) NOT NULL, 
	site_schedule_id INTEGER, 
	deleted BOOLEAN NOT NULL, 
	changed_at DATETIME NOT NULL, 
	change_seq BIGINT NOT NULL, 
	CONSTRAINT pk_catalogue_document PRIMARY KEY (catalogue_document_id), 
	CONSTRAINT uq_catalogue_document_document_id UNIQUE (document_id), 
	CONSTRAINT uq_catalogue_document_change_seq UNIQUE (change_seq)
);

CREATE INDEX ix_catalogue_document_changed ON catalogue_document (changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_item ON catalogue_document (item_identifier, origin);

CREATE INDEX ix_catalogue_document_origin ON catalogue_document (origin, changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_site ON catalogue_document (site_schedule_id, changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_type ON catalogue_document (document_type, changed_at, catalogue_document_id);

CREATE TABLE catalogue_set (
	catalogue_set_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	catalogue_document_id INTEGER NOT NULL, 
	set_spec VARCHAR(800) NOT NULL
);

CREATE INDEX ix_catalogue_set_catalogue_document_id ON catalogue_set (catalogue_document_id);

CREATE INDEX ix_catalogue_set_spec ON catalogue_set (set_spec, catalogue_document_id);

CREATE TABLE document_origin (
	document_origin_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	document_id VARCHAR(800) NOT NULL, 
	revision BIGINT NOT NULL, 
	base_url TEXT NOT NULL, 
	identifier TEXT NOT NULL, 
	prefix TEXT NOT NULL, 
	datestamp VARCHAR(40) NOT NULL, 
	response_date VARCHAR(40) NOT NULL, 
	namespace TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	altered BOOLEAN NOT NULL, 
	sets TEXT NOT NULL, 
	about TEXT NOT NULL, 
	received BLOB, 
	CONSTRAINT uq_document_origin UNIQUE (document_id, revision)
);

CREATE TABLE document_owner (
	document_id VARCHAR(800) NOT NULL, 
	site_schedule_id INTEGER NOT NULL, 
	CONSTRAINT pk_document_owner PRIMARY KEY (document_id)
);

CREATE INDEX ix_document_owner_site_schedule_id ON document_owner (site_schedule_id);

CREATE TABLE document_revision (
	document_revision_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	document_id VARCHAR(800) NOT NULL, 
	revision BIGINT NOT NULL, 
	document_type TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	source_url TEXT NOT NULL, 
	site_schedule_id INTEGER, 
	inserted_at DATETIME NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT uq_document_revision UNIQUE (document_id, revision)
);

CREATE TABLE document_tombstone (
	document_id VARCHAR(800) NOT NULL, 
	revision BIGINT NOT NULL, 
	site_schedule_id INTEGER, 
	datestamp VARCHAR(40) NOT NULL, 
	deleted_at DATETIME NOT NULL, 
	CONSTRAINT pk_document_tombstone PRIMARY KEY (document_id)
);

CREATE TABLE document_transfer (
	transfer_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	document_id VARCHAR(800) NOT NULL, 
	from_site_id INTEGER, 
	from_site VARCHAR(100), 
	to_site_id INTEGER, 
	to_site VARCHAR(100) NOT NULL, 
	transferred_on DATE NOT NULL, 
	transferred_at DATETIME NOT NULL, 
	transferred_by VARCHAR(255) NOT NULL, 
	run_id INTEGER, 
	message TEXT NOT NULL
);

CREATE INDEX ix_document_transfer_document_id ON document_transfer (document_id);

CREATE TABLE document_withdrawal (
	document_id VARCHAR(800) NOT NULL, 
	reason TEXT NOT NULL, 
	site VARCHAR(100), 
	withdrawn_on DATE NOT NULL, 
	withdrawn_at DATETIME NOT NULL, 
	withdrawn_by VARCHAR(255) NOT NULL, 
	erased BOOLEAN NOT NULL, 
	CONSTRAINT pk_document_withdrawal PRIMARY KEY (document_id)
);

CREATE TABLE folder_marker (
	path_sha256 VARCHAR(64) NOT NULL, 
	path TEXT NOT NULL, 
	folder_id VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_folder_marker PRIMARY KEY (path_sha256)
);

CREATE TABLE harvest_document (
	harvest_document_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	site_schedule_id INTEGER NOT NULL, 
	document_id VARCHAR(800) NOT NULL, 
	revision BIGINT NOT NULL, 
	document_url TEXT NOT NULL, 
	document_type TEXT NOT NULL, 
	target_revision BIGINT, 
	outcome VARCHAR(16), 
	sha256 VARCHAR(64), 
	etag VARCHAR(100), 
	last_modified VARCHAR(100), 
	looked_at DATE, 
	failing_since DATE, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	next_attempt DATE, 
	pending_run BIGINT, 
	pending_sha256 VARCHAR(64), 
	digest VARCHAR(64), 
	datestamp VARCHAR(40), 
	listing BIGINT, 
	to_delete BOOLEAN DEFAULT 0 NOT NULL, 
	missing_since DATE, 
	title VARCHAR(300), 
	state VARCHAR(16) DEFAULT 'failed' NOT NULL, 
	CONSTRAINT uq_harvest_document UNIQUE (site_schedule_id, document_id, revision)
);

CREATE INDEX ix_harvest_document_look ON harvest_document (site_schedule_id, looked_at);

CREATE INDEX ix_harvest_document_retry ON harvest_document (next_attempt, site_schedule_id);

CREATE TABLE harvest_operation (
	harvest_operation_code VARCHAR(64) NOT NULL, 
	explanation VARCHAR(255) NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_harvest_operation PRIMARY KEY (harvest_operation_code)
);

CREATE TABLE harvest_run (
	run_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	harvest_date DATE NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	status VARCHAR(16) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	heartbeat_at DATETIME NOT NULL
);

CREATE INDEX ix_harvest_run_status ON harvest_run (status);

CREATE TABLE harvest_site_schedule (
	site_schedule_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(100) NOT NULL, 
	source_kind VARCHAR(32) DEFAULT 'harvest-list' NOT NULL, 
	documentlisturl TEXT NOT NULL, 
	ldapdn VARCHAR(255), 
	ldappwd VARCHAR(255), 
	datenextharvest DATE, 
	datelastharvest DATE, 
	updatefrequency INTEGER DEFAULT '1', 
	unit VARCHAR(50) DEFAULT 'days', 
	day_of_month INTEGER, 
	contact_email TEXT, 
	notify VARCHAR(16) DEFAULT 'always' NOT NULL, 
	enabled BOOLEAN DEFAULT 1 NOT NULL, 
	options TEXT, 
	list_etag TEXT, 
	list_last_modified VARCHAR(100), 
	list_sha256 VARCHAR(64), 
	CONSTRAINT uq_harvest_site_schedule_name UNIQUE (name)
);

CREATE TABLE site_checkpoint (
	site_schedule_id INTEGER NOT NULL, 
	checkpoint TEXT, 
	listing BIGINT DEFAULT '0' NOT NULL, 
	site_run_id INTEGER, 
	unchanged BIGINT DEFAULT '0' NOT NULL, 
	duplicate BIGINT DEFAULT '0' NOT NULL, 
	confirmed BIGINT DEFAULT '0' NOT NULL, 
	treatment VARCHAR(64), 
	rechecks BOOLEAN DEFAULT 0 NOT NULL, 
	moved BIGINT DEFAULT '0' NOT NULL, 
	full_wanted BOOLEAN DEFAULT 0 NOT NULL, 
	kind VARCHAR(8), 
	windows TEXT, 
	token TEXT, 
	received BIGINT, 
	announced BIGINT, 
	CONSTRAINT pk_site_checkpoint PRIMARY KEY (site_schedule_id)
);

CREATE TABLE site_problem (
	site_problem_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	site_schedule_id INTEGER NOT NULL, 
	fingerprint VARCHAR(32) NOT NULL, 
	document_id VARCHAR(800), 
	rule VARCHAR(64) NOT NULL, 
	needs_attention BOOLEAN NOT NULL, 
	detail_log_id INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	first_seen DATE NOT NULL, 
	first_site_run INTEGER NOT NULL, 
	last_seen DATE NOT NULL, 
	last_site_run INTEGER NOT NULL, 
	nights INTEGER NOT NULL, 
	ended_on DATE, 
	ended_site_run INTEGER, 
	CONSTRAINT uq_site_problem UNIQUE (site_schedule_id, fingerprint)
);

CREATE INDEX ix_site_problem_ended_site_run ON site_problem (ended_site_run);

CREATE INDEX ix_site_problem_state ON site_problem (site_schedule_id, state);

CREATE TABLE harvest_site_run (
	site_run_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id INTEGER NOT NULL, 
	site_schedule_id INTEGER NOT NULL, 
	site_name VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	rehearsal BOOLEAN DEFAULT 0 NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	failure_reason TEXT, 
	list_url TEXT, 
	listed BIGINT NOT NULL, 
	inserted BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	unchanged BIGINT NOT NULL, 
	deleted BIGINT DEFAULT '0' NOT NULL, 
	filtered BIGINT DEFAULT '0' NOT NULL, 
	stale BIGINT NOT NULL, 
	duplicate BIGINT NOT NULL, 
	"deferred" BIGINT NOT NULL, 
	access_error BIGINT NOT NULL, 
	invalid BIGINT NOT NULL, 
	upload_error BIGINT NOT NULL, 
	warnings BIGINT NOT NULL, 
	next_harvest DATE, 
	server_seconds FLOAT, 
	waiting_seconds FLOAT, 
	checking_seconds FLOAT, 
	storing_seconds FLOAT, 
	CONSTRAINT fk_harvest_site_run_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
);

CREATE INDEX ix_harvest_site_run_run_id ON harvest_site_run (run_id);

CREATE INDEX ix_harvest_site_run_site_name ON harvest_site_run (site_name);

CREATE INDEX ix_harvest_site_run_site_schedule_id ON harvest_site_run (site_schedule_id);

CREATE INDEX ix_harvest_site_run_status ON harvest_site_run (status);

CREATE TABLE harvest_log (
	harvest_log_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	harvest_date DATE NOT NULL, 
	logged_at DATETIME NOT NULL, 
	status INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	harvest_operation_code VARCHAR(64) NOT NULL, 
	site_schedule_id INTEGER, 
	site_run_id INTEGER, 
	run_id INTEGER NOT NULL, 
	document_id VARCHAR(800), 
	revision BIGINT, 
	document_url TEXT, 
	outcome VARCHAR(16), 
	target_revision BIGINT, 
	seconds FLOAT, 
	size BIGINT, 
	CONSTRAINT fk_harvest_log_harvest_operation_code FOREIGN KEY(harvest_operation_code) REFERENCES harvest_operation (harvest_operation_code), 
	CONSTRAINT fk_harvest_log_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id), 
	CONSTRAINT fk_harvest_log_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
);

CREATE INDEX ix_harvest_log_harvest_date ON harvest_log (harvest_date);

CREATE INDEX ix_harvest_log_run ON harvest_log (run_id, site_run_id);

CREATE INDEX ix_harvest_log_site_run_document ON harvest_log (site_run_id, document_id);

CREATE TABLE report_outbox (
	report_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	idempotency_key VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	run_id INTEGER NOT NULL, 
	site_run_id INTEGER, 
	message_id VARCHAR(255) NOT NULL, 
	subject TEXT NOT NULL, 
	content BLOB NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT uq_report_outbox_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT fk_report_outbox_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id), 
	CONSTRAINT fk_report_outbox_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id)
);

CREATE INDEX ix_report_outbox_run_id ON report_outbox (run_id);

CREATE INDEX ix_report_outbox_site_run_id ON report_outbox (site_run_id);

CREATE TABLE harvest_detail_log (
	detail_log_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	harvest_log_id INTEGER NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	scope TEXT, 
	identifier BIGINT, 
	revision BIGINT, 
	document_id TEXT, 
	document_url TEXT, 
	document_type TEXT, 
	error_message TEXT NOT NULL, 
	rule VARCHAR(64) NOT NULL, 
	line_number BIGINT, 
	column_number BIGINT, 
	xpath TEXT, 
	excerpt TEXT, 
	remedy TEXT, 
	fingerprint VARCHAR(32), 
	CONSTRAINT fk_harvest_detail_log_harvest_log_id FOREIGN KEY(harvest_log_id) REFERENCES harvest_log (harvest_log_id)
);

CREATE INDEX ix_harvest_detail_log_harvest_log_id ON harvest_detail_log (harvest_log_id);

CREATE TABLE report_delivery (
	delivery_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	report_id INTEGER NOT NULL, 
	recipient VARCHAR(320) NOT NULL, 
	status VARCHAR(16) DEFAULT 'queued' NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	last_error TEXT, 
	last_attempt_at DATETIME, 
	first_sent_at DATETIME, 
	by_hand BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT uq_report_delivery UNIQUE (report_id, recipient), 
	CONSTRAINT fk_report_delivery_report_id FOREIGN KEY(report_id) REFERENCES report_outbox (report_id)
);

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

-- The tables of metaharvest on postgresql, for reading: `metaharvest init` creates and upgrades them.

CREATE TABLE api_call (
	api_call_id BIGSERIAL NOT NULL, 
	api_key_id BIGINT NOT NULL, 
	idempotency_key VARCHAR(255) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	called_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	status INTEGER, 
	answer TEXT, 
	CONSTRAINT pk_api_call PRIMARY KEY (api_call_id), 
	CONSTRAINT uq_api_call UNIQUE (api_key_id, idempotency_key)
);

CREATE INDEX ix_api_call_called_at ON api_call (called_at);

CREATE TABLE api_key (
	api_key_id BIGSERIAL NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	key_hash VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_by VARCHAR(320) NOT NULL, 
	created_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	expires_at TIMESTAMP WITHOUT TIME ZONE, 
	last_used_at TIMESTAMP WITHOUT TIME ZONE, 
	revoked_at TIMESTAMP WITHOUT TIME ZONE, 
	CONSTRAINT pk_api_key PRIMARY KEY (api_key_id), 
	CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash)
);

CREATE TABLE audit_entry (
	audit_entry_id BIGSERIAL NOT NULL, 
	at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	actor VARCHAR(320) NOT NULL, 
	via VARCHAR(16) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject_kind VARCHAR(32) NOT NULL, 
	subject TEXT NOT NULL, 
	site_schedule_id BIGINT, 
	before_values TEXT, 
	after_values TEXT, 
	reason TEXT, 
	CONSTRAINT pk_audit_entry PRIMARY KEY (audit_entry_id)
);

CREATE INDEX ix_audit_entry_actor ON audit_entry (actor, audit_entry_id);

CREATE INDEX ix_audit_entry_at ON audit_entry (at);

CREATE INDEX ix_audit_entry_site ON audit_entry (site_schedule_id, audit_entry_id);

CREATE TABLE catalogue_counter (
	counter_id BIGINT NOT NULL, 
	change_seq BIGINT NOT NULL, 
	changed_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_catalogue_counter PRIMARY KEY (counter_id)
);

CREATE TABLE catalogue_document (
	catalogue_document_id BIGINT NOT NULL, 
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	item_identifier VARCHAR(800) COLLATE "C" NOT NULL, 
	origin VARCHAR(200), 
	document_type VARCHAR(255) NOT NULL, 
	revision BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	title VARCHAR(300) NOT NULL, 
	site_schedule_id BIGINT, 
	deleted BOOLEAN NOT NULL, 
	changed_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	change_seq BIGINT NOT NULL, 
	CONSTRAINT pk_catalogue_document PRIMARY KEY (catalogue_document_id), 
	CONSTRAINT uq_catalogue_document_document_id UNIQUE (document_id), 
	CONSTRAINT uq_catalogue_document_change_seq UNIQUE (change_seq)
);

CREATE INDEX ix_catalogue_document_changed ON catalogue_document (changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_item ON catalogue_document (item_identifier, origin);

CREATE INDEX ix_catalogue_document_origin ON catalogue_document (origin, changed_at, catalogue_document_id);

CREATE INDEX ix_catalogue_document_site ON catalogue_document (site_schedule_id, changed_at, catalogue_document_id, deleted);

CREATE INDEX ix_catalogue_document_type ON catalogue_document (document_type, changed_at, catalogue_document_id);

CREATE TABLE catalogue_former_format (
	catalogue_document_id BIGINT NOT NULL, 
	document_type VARCHAR(255) NOT NULL, 
	changed_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_catalogue_former_format PRIMARY KEY (catalogue_document_id, document_type)
);

CREATE INDEX ix_catalogue_former_format_type ON catalogue_former_format (document_type, changed_at, catalogue_document_id);

CREATE TABLE catalogue_set (
	catalogue_set_id BIGSERIAL NOT NULL, 
	catalogue_document_id BIGINT NOT NULL, 
	set_spec VARCHAR(800) COLLATE "C" NOT NULL, 
	CONSTRAINT pk_catalogue_set PRIMARY KEY (catalogue_set_id)
);

CREATE INDEX ix_catalogue_set_catalogue_document_id ON catalogue_set (catalogue_document_id);

CREATE INDEX ix_catalogue_set_spec ON catalogue_set (set_spec, catalogue_document_id);

CREATE TABLE catalogue_withheld (
	catalogue_document_id BIGINT NOT NULL, 
	retracted BOOLEAN NOT NULL, 
	CONSTRAINT pk_catalogue_withheld PRIMARY KEY (catalogue_document_id)
);

CREATE TABLE console_link (
	link_id BIGSERIAL NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	address VARCHAR(320) NOT NULL, 
	created_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	expires_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	spent_at TIMESTAMP WITHOUT TIME ZONE, 
	CONSTRAINT pk_console_link PRIMARY KEY (link_id), 
	CONSTRAINT uq_console_link_token_hash UNIQUE (token_hash)
);

CREATE INDEX ix_console_link_address ON console_link (address, created_at);

CREATE INDEX ix_console_link_expires_at ON console_link (expires_at);

CREATE TABLE console_session (
	session_id BIGSERIAL NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	address VARCHAR(320) NOT NULL, 
	created_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	last_seen_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	expires_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	user_agent VARCHAR(300) NOT NULL, 
	CONSTRAINT pk_console_session PRIMARY KEY (session_id), 
	CONSTRAINT uq_console_session_token_hash UNIQUE (token_hash)
);

CREATE INDEX ix_console_session_address ON console_session (address);

CREATE INDEX ix_console_session_expires_at ON console_session (expires_at);

CREATE TABLE console_user (
	user_id BIGSERIAL NOT NULL, 
	address VARCHAR(320) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	disabled_at TIMESTAMP WITHOUT TIME ZONE, 
	issuer VARCHAR(255), 
	subject VARCHAR(255), 
	CONSTRAINT pk_console_user PRIMARY KEY (user_id), 
	CONSTRAINT uq_console_user_subject UNIQUE (issuer, subject), 
	CONSTRAINT uq_console_user_address UNIQUE (address)
);

CREATE TABLE daemon_state (
	daemon_id BIGINT NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	next_run_at TIMESTAMP WITHOUT TIME ZONE, 
	zone VARCHAR(64) NOT NULL, 
	seen_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_daemon_state PRIMARY KEY (daemon_id)
);

CREATE TABLE document_origin (
	document_origin_id BIGSERIAL NOT NULL, 
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
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
	received BYTEA, 
	CONSTRAINT pk_document_origin PRIMARY KEY (document_origin_id), 
	CONSTRAINT uq_document_origin UNIQUE (document_id, revision)
);

CREATE TABLE document_owner (
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	CONSTRAINT pk_document_owner PRIMARY KEY (document_id)
);

CREATE INDEX ix_document_owner_site_schedule_id ON document_owner (site_schedule_id);

CREATE TABLE document_revision (
	document_revision_id BIGSERIAL NOT NULL, 
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	revision BIGINT NOT NULL, 
	document_type TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	source_url TEXT NOT NULL, 
	site_schedule_id BIGINT, 
	inserted_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	content BYTEA NOT NULL, 
	CONSTRAINT pk_document_revision PRIMARY KEY (document_revision_id), 
	CONSTRAINT uq_document_revision UNIQUE (document_id, revision)
);

CREATE TABLE document_tombstone (
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	revision BIGINT NOT NULL, 
	site_schedule_id BIGINT, 
	datestamp VARCHAR(40) NOT NULL, 
	deleted_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_document_tombstone PRIMARY KEY (document_id)
);

CREATE TABLE document_transfer (
	transfer_id BIGSERIAL NOT NULL, 
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	from_site_id BIGINT, 
	from_site VARCHAR(100), 
	to_site_id BIGINT, 
	to_site VARCHAR(100) NOT NULL, 
	transferred_on DATE NOT NULL, 
	transferred_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	transferred_by VARCHAR(255) NOT NULL, 
	run_id BIGINT, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_document_transfer PRIMARY KEY (transfer_id)
);

CREATE INDEX ix_document_transfer_document_id ON document_transfer (document_id);

CREATE TABLE document_withdrawal (
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
	reason TEXT NOT NULL, 
	site VARCHAR(100), 
	withdrawn_on DATE NOT NULL, 
	withdrawn_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
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
	harvest_document_id BIGSERIAL NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	document_id VARCHAR(800) COLLATE "C" NOT NULL, 
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
	to_delete BOOLEAN DEFAULT false NOT NULL, 
	missing_since DATE, 
	title VARCHAR(300), 
	state VARCHAR(16) DEFAULT 'failed' NOT NULL, 
	CONSTRAINT pk_harvest_document PRIMARY KEY (harvest_document_id), 
	CONSTRAINT uq_harvest_document UNIQUE (site_schedule_id, document_id, revision)
);

CREATE INDEX ix_harvest_document_document ON harvest_document (document_id, site_schedule_id);

CREATE INDEX ix_harvest_document_failing ON harvest_document (site_schedule_id, failing_since) WHERE failing_since IS NOT NULL;

CREATE INDEX ix_harvest_document_look ON harvest_document (site_schedule_id, looked_at);

CREATE INDEX ix_harvest_document_retry ON harvest_document (next_attempt, site_schedule_id) WHERE next_attempt IS NOT NULL;

CREATE INDEX ix_harvest_document_state ON harvest_document (state, site_schedule_id);

CREATE TABLE harvest_operation (
	harvest_operation_code VARCHAR(64) NOT NULL, 
	explanation VARCHAR(255) NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_harvest_operation PRIMARY KEY (harvest_operation_code)
);

CREATE TABLE harvest_request (
	request_id BIGSERIAL NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	site_schedule_id BIGINT, 
	site_name VARCHAR(100), 
	scope VARCHAR(16), 
	priority INTEGER DEFAULT '0' NOT NULL, 
	asked_by VARCHAR(320) NOT NULL, 
	asked_via VARCHAR(16) NOT NULL, 
	asked_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	sentence TEXT, 
	run_id BIGINT, 
	taken_at TIMESTAMP WITHOUT TIME ZONE, 
	ended_at TIMESTAMP WITHOUT TIME ZONE, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	open_key VARCHAR(64), 
	CONSTRAINT pk_harvest_request PRIMARY KEY (request_id), 
	CONSTRAINT uq_harvest_request_open_key UNIQUE (open_key)
);

CREATE INDEX ix_harvest_request_run_id ON harvest_request (run_id);

CREATE INDEX ix_harvest_request_site_schedule_id ON harvest_request (site_schedule_id);

CREATE INDEX ix_harvest_request_state ON harvest_request (state, kind);

CREATE TABLE harvest_run (
	run_id BIGSERIAL NOT NULL, 
	harvest_date DATE NOT NULL, 
	started_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	ended_at TIMESTAMP WITHOUT TIME ZONE, 
	status VARCHAR(16) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	heartbeat_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	distributed BOOLEAN DEFAULT false NOT NULL, 
	due_sites_of DATE, 
	CONSTRAINT pk_harvest_run PRIMARY KEY (run_id)
);

CREATE INDEX ix_harvest_run_status ON harvest_run (status);

CREATE TABLE harvest_site_schedule (
	site_schedule_id BIGSERIAL NOT NULL, 
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
	enabled BOOLEAN DEFAULT true NOT NULL, 
	public BOOLEAN DEFAULT true NOT NULL, 
	options TEXT, 
	list_etag TEXT, 
	list_last_modified VARCHAR(100), 
	list_sha256 VARCHAR(64), 
	CONSTRAINT pk_harvest_site_schedule PRIMARY KEY (site_schedule_id), 
	CONSTRAINT uq_harvest_site_schedule_name UNIQUE (name)
);

CREATE TABLE host_lease (
	host VARCHAR(800) COLLATE "C" NOT NULL, 
	holder VARCHAR(255), 
	lease_until TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	wanted_at TIMESTAMP WITHOUT TIME ZONE, 
	servers TEXT, 
	CONSTRAINT pk_host_lease PRIMARY KEY (host)
);

CREATE TABLE job (
	job_id BIGSERIAL NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	run_id BIGINT, 
	subject VARCHAR(255) NOT NULL, 
	work TEXT NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	priority INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	not_before TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	open_key VARCHAR(255), 
	host_key VARCHAR(255), 
	worker VARCHAR(255), 
	fence BIGINT DEFAULT '0' NOT NULL, 
	lease_until TIMESTAMP WITHOUT TIME ZONE, 
	is_to_end BOOLEAN DEFAULT false NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	slices INTEGER DEFAULT '0' NOT NULL, 
	made_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	began_at TIMESTAMP WITHOUT TIME ZONE, 
	ended_at TIMESTAMP WITHOUT TIME ZONE, 
	seconds FLOAT(53) DEFAULT '0' NOT NULL, 
	cpu_seconds FLOAT(53) DEFAULT '0' NOT NULL, 
	memory_bytes BIGINT DEFAULT '0' NOT NULL, 
	sentence TEXT, 
	CONSTRAINT pk_job PRIMARY KEY (job_id), 
	CONSTRAINT uq_job_open_key UNIQUE (open_key), 
	CONSTRAINT uq_job_host_key UNIQUE (host_key)
);

CREATE INDEX ix_job_ended_at ON job (ended_at);

CREATE INDEX ix_job_next ON job (state, priority DESC, job_id);

CREATE INDEX ix_job_run ON job (run_id, state);

CREATE TABLE job_event (
	job_event_id BIGSERIAL NOT NULL, 
	job_id BIGINT NOT NULL, 
	fence BIGINT NOT NULL, 
	step VARCHAR(16) NOT NULL, 
	worker VARCHAR(255) NOT NULL, 
	at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	sentence TEXT, 
	CONSTRAINT pk_job_event PRIMARY KEY (job_event_id)
);

CREATE INDEX ix_job_event_job_id ON job_event (job_id);

CREATE TABLE lookup_answer (
	request_sha256 VARCHAR(64) NOT NULL, 
	answer TEXT NOT NULL, 
	answered_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_lookup_answer PRIMARY KEY (request_sha256)
);

CREATE TABLE output (
	catalogue_document_id BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	version INTEGER NOT NULL, 
	year INTEGER, 
	doi VARCHAR(255), 
	content TEXT NOT NULL, 
	CONSTRAINT pk_output PRIMARY KEY (catalogue_document_id)
);

CREATE INDEX ix_output_doi ON output (doi);

CREATE TABLE output_block (
	block VARCHAR(64) NOT NULL, 
	catalogue_document_id BIGINT NOT NULL, 
	CONSTRAINT pk_output_block PRIMARY KEY (block, catalogue_document_id)
);

CREATE INDEX ix_output_block_document ON output_block (catalogue_document_id);

CREATE TABLE output_decision (
	catalogue_document_id BIGINT NOT NULL, 
	other_id BIGINT NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	answer VARCHAR(16) NOT NULL, 
	reason TEXT, 
	decided_by VARCHAR(255) NOT NULL, 
	decided_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_output_decision PRIMARY KEY (catalogue_document_id, other_id, kind)
);

CREATE INDEX ix_output_decision_other ON output_decision (other_id);

CREATE TABLE output_file (
	output_file_id BIGSERIAL NOT NULL, 
	catalogue_document_id BIGINT NOT NULL, 
	rank INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	final_url TEXT NOT NULL, 
	found_by VARCHAR(64) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	media_type VARCHAR(100) NOT NULL, 
	size BIGINT NOT NULL, 
	kept BOOLEAN NOT NULL, 
	licence TEXT, 
	etag TEXT, 
	last_modified VARCHAR(100), 
	fetched_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_output_file PRIMARY KEY (output_file_id)
);

CREATE INDEX ix_output_file_document ON output_file (catalogue_document_id, rank);

CREATE INDEX ix_output_file_sha256 ON output_file (sha256);

CREATE TABLE output_pair (
	catalogue_document_id BIGINT NOT NULL, 
	other_id BIGINT NOT NULL, 
	answer VARCHAR(16) NOT NULL, 
	method VARCHAR(16) NOT NULL, 
	score FLOAT(53) NOT NULL, 
	reason TEXT NOT NULL, 
	CONSTRAINT pk_output_pair PRIMARY KEY (catalogue_document_id, other_id)
);

CREATE INDEX ix_output_pair_answer ON output_pair (answer, catalogue_document_id, other_id);

CREATE INDEX ix_output_pair_other ON output_pair (other_id);

CREATE TABLE output_reference (
	output_reference_id BIGSERIAL NOT NULL, 
	catalogue_document_id BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	raw TEXT NOT NULL, 
	doi VARCHAR(255), 
	matched_id BIGINT, 
	method VARCHAR(32), 
	score FLOAT(53), 
	CONSTRAINT pk_output_reference PRIMARY KEY (output_reference_id)
);

CREATE INDEX ix_output_reference_document ON output_reference (catalogue_document_id, position);

CREATE INDEX ix_output_reference_doi ON output_reference (doi);

CREATE INDEX ix_output_reference_matched_id ON output_reference (matched_id);

CREATE TABLE output_text (
	catalogue_document_id BIGINT NOT NULL, 
	version INTEGER NOT NULL, 
	file_sha256 VARCHAR(64) NOT NULL, 
	text_sha256 VARCHAR(64) NOT NULL, 
	characters INTEGER NOT NULL, 
	pages INTEGER, 
	language VARCHAR(16) NOT NULL, 
	language_score FLOAT(53), 
	CONSTRAINT pk_output_text PRIMARY KEY (catalogue_document_id)
);

CREATE INDEX ix_output_text_file_sha256 ON output_text (file_sha256);

CREATE INDEX ix_output_text_text_sha256 ON output_text (text_sha256);

CREATE TABLE output_title (
	title_key VARCHAR(64) NOT NULL, 
	catalogue_document_id BIGINT NOT NULL, 
	CONSTRAINT pk_output_title PRIMARY KEY (title_key, catalogue_document_id)
);

CREATE INDEX ix_output_title_document ON output_title (catalogue_document_id);

CREATE TABLE output_vector (
	catalogue_document_id BIGINT NOT NULL, 
	model VARCHAR(64) NOT NULL, 
	vector BYTEA NOT NULL, 
	CONSTRAINT pk_output_vector PRIMARY KEY (catalogue_document_id)
);

CREATE TABLE output_work (
	catalogue_document_id BIGINT NOT NULL, 
	work_id BIGINT NOT NULL, 
	CONSTRAINT pk_output_work PRIMARY KEY (catalogue_document_id)
);

CREATE INDEX ix_output_work_work_id ON output_work (work_id);

CREATE TABLE pipeline_feed (
	name VARCHAR(100) NOT NULL, 
	change_seq BIGINT NOT NULL, 
	moved_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_pipeline_feed PRIMARY KEY (name)
);

CREATE TABLE pipeline_leftover (
	kind VARCHAR(16) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_pipeline_leftover PRIMARY KEY (kind, sha256)
);

CREATE TABLE pipeline_stage (
	stage VARCHAR(32) NOT NULL, 
	version INTEGER NOT NULL, 
	CONSTRAINT pk_pipeline_stage PRIMARY KEY (stage)
);

CREATE TABLE pipeline_step (
	catalogue_document_id BIGINT NOT NULL, 
	stage VARCHAR(32) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	woken BIGINT NOT NULL, 
	revision BIGINT, 
	version INTEGER, 
	rule VARCHAR(64), 
	message TEXT, 
	attempts INTEGER NOT NULL, 
	retry_at TIMESTAMP WITHOUT TIME ZONE, 
	ended_at TIMESTAMP WITHOUT TIME ZONE, 
	CONSTRAINT pk_pipeline_step PRIMARY KEY (catalogue_document_id, stage)
);

CREATE INDEX ix_pipeline_step_ended ON pipeline_step (stage, ended_at);

CREATE INDEX ix_pipeline_step_retry ON pipeline_step (stage, retry_at);

CREATE INDEX ix_pipeline_step_state ON pipeline_step (stage, state, catalogue_document_id);

CREATE TABLE site_checkpoint (
	site_schedule_id BIGINT NOT NULL, 
	checkpoint TEXT, 
	listing BIGINT DEFAULT '0' NOT NULL, 
	site_run_id BIGINT, 
	unchanged BIGINT DEFAULT '0' NOT NULL, 
	duplicate BIGINT DEFAULT '0' NOT NULL, 
	confirmed BIGINT DEFAULT '0' NOT NULL, 
	treatment VARCHAR(64), 
	rechecks BOOLEAN DEFAULT false NOT NULL, 
	moved BIGINT DEFAULT '0' NOT NULL, 
	full_wanted BOOLEAN DEFAULT false NOT NULL, 
	kind VARCHAR(8), 
	windows TEXT, 
	token TEXT, 
	received BIGINT, 
	announced BIGINT, 
	CONSTRAINT pk_site_checkpoint PRIMARY KEY (site_schedule_id)
);

CREATE TABLE site_problem (
	site_problem_id BIGSERIAL NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	fingerprint VARCHAR(32) NOT NULL, 
	document_id VARCHAR(800) COLLATE "C", 
	rule VARCHAR(64) NOT NULL, 
	needs_attention BOOLEAN NOT NULL, 
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
);

CREATE INDEX ix_site_problem_ended_on ON site_problem (ended_on);

CREATE INDEX ix_site_problem_ended_site_run ON site_problem (ended_site_run);

CREATE INDEX ix_site_problem_rule ON site_problem (state, rule, site_schedule_id);

CREATE INDEX ix_site_problem_state ON site_problem (site_schedule_id, state);

CREATE TABLE site_progress (
	site_schedule_id BIGINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	site_name VARCHAR(100) NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	listed BIGINT NOT NULL, 
	done BIGINT NOT NULL, 
	errors BIGINT NOT NULL, 
	began_at TIMESTAMP WITHOUT TIME ZONE, 
	updated_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_site_progress PRIMARY KEY (site_schedule_id)
);

CREATE TABLE site_registration (
	registration_id BIGSERIAL NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(24) NOT NULL, 
	site_schedule_id BIGINT, 
	name VARCHAR(100) NOT NULL, 
	source_kind VARCHAR(32) NOT NULL, 
	url TEXT NOT NULL, 
	prefix VARCHAR(255), 
	set_spec TEXT, 
	address VARCHAR(255) NOT NULL, 
	mailbox VARCHAR(255) NOT NULL, 
	frequency INTEGER NOT NULL, 
	unit VARCHAR(16) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	asked_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	summary TEXT, 
	address_token VARCHAR(64), 
	address_mails INTEGER DEFAULT '0' NOT NULL, 
	address_proved_at TIMESTAMP WITHOUT TIME ZONE, 
	list_token VARCHAR(64), 
	list_looks INTEGER DEFAULT '0' NOT NULL, 
	source_contacts TEXT, 
	source_token VARCHAR(64), 
	source_mailed_to VARCHAR(255), 
	source_mailed_at TIMESTAMP WITHOUT TIME ZONE, 
	source_mails INTEGER DEFAULT '0' NOT NULL, 
	source_proved_at TIMESTAMP WITHOUT TIME ZONE, 
	source_proof VARCHAR(16), 
	mail_problem TEXT, 
	decided_at TIMESTAMP WITHOUT TIME ZONE, 
	decided_by VARCHAR(255), 
	reason TEXT, 
	CONSTRAINT pk_site_registration PRIMARY KEY (registration_id)
);

CREATE INDEX ix_site_registration_address_token ON site_registration (address_token);

CREATE INDEX ix_site_registration_asked_at ON site_registration (asked_at);

CREATE INDEX ix_site_registration_host ON site_registration (host);

CREATE INDEX ix_site_registration_mailbox ON site_registration (mailbox);

CREATE INDEX ix_site_registration_site_schedule_id ON site_registration (site_schedule_id);

CREATE INDEX ix_site_registration_source_mailed_to ON site_registration (source_mailed_to);

CREATE INDEX ix_site_registration_source_token ON site_registration (source_token);

CREATE INDEX ix_site_registration_state ON site_registration (state);

CREATE TABLE site_totals (
	site_totals_id BIGSERIAL NOT NULL, 
	first_day DATE NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	runs BIGINT NOT NULL, 
	harvests BIGINT NOT NULL, 
	failed_harvests BIGINT NOT NULL, 
	went_well BIGINT NOT NULL, 
	inserted BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	deleted BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	seconds FLOAT(53) NOT NULL, 
	failing BIGINT, 
	last_success DATE, 
	CONSTRAINT pk_site_totals PRIMARY KEY (site_totals_id), 
	CONSTRAINT uq_site_totals_first_day_site_schedule_id UNIQUE (first_day, site_schedule_id)
);

CREATE TABLE worker (
	worker_id BIGSERIAL NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	began_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	seen_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	job_id BIGINT, 
	jobs INTEGER DEFAULT '0' NOT NULL, 
	is_ending BOOLEAN DEFAULT false NOT NULL, 
	CONSTRAINT pk_worker PRIMARY KEY (worker_id), 
	CONSTRAINT uq_worker_name UNIQUE (name)
);

CREATE TABLE harvest_site_run (
	site_run_id BIGSERIAL NOT NULL, 
	run_id BIGINT NOT NULL, 
	site_schedule_id BIGINT NOT NULL, 
	site_name VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	rehearsal BOOLEAN DEFAULT false NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	started_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	ended_at TIMESTAMP WITHOUT TIME ZONE, 
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
	deferred BIGINT NOT NULL, 
	access_error BIGINT NOT NULL, 
	invalid BIGINT NOT NULL, 
	upload_error BIGINT NOT NULL, 
	warnings BIGINT NOT NULL, 
	next_harvest DATE, 
	server_seconds FLOAT(53), 
	waiting_seconds FLOAT(53), 
	checking_seconds FLOAT(53), 
	storing_seconds FLOAT(53), 
	CONSTRAINT pk_harvest_site_run PRIMARY KEY (site_run_id), 
	CONSTRAINT fk_harvest_site_run_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
);

CREATE INDEX ix_harvest_site_run_run_id ON harvest_site_run (run_id);

CREATE INDEX ix_harvest_site_run_site ON harvest_site_run (site_schedule_id, site_run_id);

CREATE INDEX ix_harvest_site_run_site_name ON harvest_site_run (site_name);

CREATE INDEX ix_harvest_site_run_site_status ON harvest_site_run (site_schedule_id, status, site_run_id);

CREATE INDEX ix_harvest_site_run_status ON harvest_site_run (status);

CREATE TABLE harvest_log (
	harvest_log_id BIGSERIAL NOT NULL, 
	harvest_date DATE NOT NULL, 
	logged_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	status INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	harvest_operation_code VARCHAR(64) NOT NULL, 
	site_schedule_id BIGINT, 
	site_run_id BIGINT, 
	run_id BIGINT NOT NULL, 
	document_id VARCHAR(800) COLLATE "C", 
	revision BIGINT, 
	document_url TEXT, 
	outcome VARCHAR(16), 
	target_revision BIGINT, 
	seconds FLOAT(53), 
	size BIGINT, 
	CONSTRAINT pk_harvest_log PRIMARY KEY (harvest_log_id), 
	CONSTRAINT fk_harvest_log_harvest_operation_code FOREIGN KEY(harvest_operation_code) REFERENCES harvest_operation (harvest_operation_code), 
	CONSTRAINT fk_harvest_log_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id), 
	CONSTRAINT fk_harvest_log_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id)
);

CREATE INDEX ix_harvest_log_document ON harvest_log (document_id);

CREATE INDEX ix_harvest_log_harvest_date ON harvest_log (harvest_date);

CREATE INDEX ix_harvest_log_run ON harvest_log (run_id, site_run_id);

CREATE INDEX ix_harvest_log_site_run_document ON harvest_log (site_run_id, document_id);

CREATE TABLE report_outbox (
	report_id BIGSERIAL NOT NULL, 
	idempotency_key VARCHAR(100) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	run_id BIGINT NOT NULL, 
	site_run_id BIGINT, 
	message_id VARCHAR(255) NOT NULL, 
	subject TEXT NOT NULL, 
	content BYTEA NOT NULL, 
	created_at TIMESTAMP WITHOUT TIME ZONE NOT NULL, 
	CONSTRAINT pk_report_outbox PRIMARY KEY (report_id), 
	CONSTRAINT uq_report_outbox_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT fk_report_outbox_run_id FOREIGN KEY(run_id) REFERENCES harvest_run (run_id), 
	CONSTRAINT fk_report_outbox_site_run_id FOREIGN KEY(site_run_id) REFERENCES harvest_site_run (site_run_id)
);

CREATE INDEX ix_report_outbox_run_id ON report_outbox (run_id);

CREATE INDEX ix_report_outbox_site_run_id ON report_outbox (site_run_id);

CREATE TABLE harvest_detail_log (
	detail_log_id BIGSERIAL NOT NULL, 
	harvest_log_id BIGINT NOT NULL, 
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
	CONSTRAINT pk_harvest_detail_log PRIMARY KEY (detail_log_id), 
	CONSTRAINT fk_harvest_detail_log_harvest_log_id FOREIGN KEY(harvest_log_id) REFERENCES harvest_log (harvest_log_id)
);

CREATE INDEX ix_harvest_detail_log_harvest_log_id ON harvest_detail_log (harvest_log_id);

CREATE INDEX ix_harvest_detail_log_rule ON harvest_detail_log (rule);

CREATE INDEX ix_harvest_detail_log_without_problem ON harvest_detail_log (rule, fingerprint) WHERE fingerprint IS NULL;

CREATE TABLE report_delivery (
	delivery_id BIGSERIAL NOT NULL, 
	report_id BIGINT NOT NULL, 
	recipient VARCHAR(320) NOT NULL, 
	status VARCHAR(16) DEFAULT 'queued' NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	last_error TEXT, 
	last_attempt_at TIMESTAMP WITHOUT TIME ZONE, 
	first_sent_at TIMESTAMP WITHOUT TIME ZONE, 
	by_hand BOOLEAN DEFAULT false NOT NULL, 
	CONSTRAINT pk_report_delivery PRIMARY KEY (delivery_id), 
	CONSTRAINT uq_report_delivery UNIQUE (report_id, recipient), 
	CONSTRAINT fk_report_delivery_report_id FOREIGN KEY(report_id) REFERENCES report_outbox (report_id)
);

CREATE INDEX ix_report_delivery_status ON report_delivery (status);

INSERT INTO harvest_operation VALUES ('HarvesterStartup', 'A run began', 'info');
INSERT INTO harvest_operation VALUES ('HarvesterShutdown', 'A run ended', 'info');
INSERT INTO harvest_operation VALUES ('RunInterrupted', 'A run did not come to its end', 'error');
INSERT INTO harvest_operation VALUES ('RequestTaken', 'The run took a request of a person', 'info');
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
INSERT INTO harvest_operation VALUES ('PipelineError', 'The pipeline did not come to its end after the run', 'error');
INSERT INTO harvest_operation VALUES ('LogPurged', 'Old log rows were deleted', 'info');
INSERT INTO harvest_operation VALUES ('LogNotPurged', 'Old log rows were kept, as the clock may be wrong', 'warning');

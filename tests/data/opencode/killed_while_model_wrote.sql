CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
CREATE INDEX `session_workspace_idx` ON `session` (`workspace_id`);
CREATE INDEX `session_parent_idx` ON `session` (`parent_id`);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE TABLE `session_message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `type` text NOT NULL,
          `seq` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE UNIQUE INDEX `session_message_session_seq_idx` ON `session_message` (`session_id`,`seq`);
CREATE INDEX `session_message_session_type_seq_idx` ON `session_message` (`session_id`,`type`,`seq`);
CREATE INDEX `session_message_session_time_created_id_idx` ON `session_message` (`session_id`,`time_created`,`id`);
CREATE INDEX `session_message_time_created_idx` ON `session_message` (`time_created`);
INSERT INTO "message" VALUES('msg_1f054c6a0001TEm11E4waQqW7z','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033450144,1795033450153,'{"role":"user","time":{"created":1795033450144},"agent":"build","model":{"providerID":"local","modelID":"m"}}');
INSERT INTO "message" VALUES('msg_1f054c9eb001PIQWCucjbR2B4v','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033450987,1795033450989,'{"parentID":"msg_1f054c6a0001TEm11E4waQqW7z","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"m","providerID":"local","time":{"created":1795033450987}}');
INSERT INTO "part" VALUES('prt_1f054c6a6001XdGQblmJGA8sgn','msg_1f054c6a0001TEm11E4waQqW7z','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033450154,1795033450156,'{"type":"text","text":"\"please do\""}');
INSERT INTO "part" VALUES('prt_1f054cc82001I41SFCMpfz0jkf','msg_1f054c9eb001PIQWCucjbR2B4v','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033451650,1795033451652,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f054cd40001gEIM38B720StkA','msg_1f054c9eb001PIQWCucjbR2B4v','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033451840,1795033451842,'{"type":"text","text":"","time":{"start":1795033451840}}');
INSERT INTO "part" VALUES('prt_1f054ce0b001Wsx0oO2dcAtmGg','msg_1f054c9eb001PIQWCucjbR2B4v','ses_e0fab39a9ffe3W5VVPXg3tsb3M',1795033452043,1795033452044,'{"type":"tool","tool":"bash","callID":"call_half","state":{"status":"pending","input":{},"raw":""}}');
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795033449624,1795033449624,NULL,'[]',NULL);
INSERT INTO "session" VALUES('ses_e0fab39a9ffe3W5VVPXg3tsb3M','global',NULL,NULL,'happy-meadow','/project','project','t','1.18.33',NULL,0,0,0,NULL,NULL,0.0,0,0,0,0,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m","providerID":"local","variant":"default"}',1795033450070,1795033451028,NULL,NULL);

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
INSERT INTO "message" VALUES('msg_1f053fd0d001Je5lvGe4d5MIhq','ses_e0fac036effeJ0h3mn9k7AB00L',1795033398541,1795033398553,'{"role":"user","time":{"created":1795033398541},"agent":"build","model":{"providerID":"local","modelID":"m"}}');
INSERT INTO "message" VALUES('msg_1f05401d5001V3gBE8o7kt5ggL','ses_e0fac036effeJ0h3mn9k7AB00L',1795033399765,1795033399769,'{"parentID":"msg_1f053fd0d001Je5lvGe4d5MIhq","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"m","providerID":"local","time":{"created":1795033399765}}');
INSERT INTO "part" VALUES('prt_1f053fd160011QFYL0U0NF85yZ','msg_1f053fd0d001Je5lvGe4d5MIhq','ses_e0fac036effeJ0h3mn9k7AB00L',1795033398563,1795033398575,'{"type":"text","text":"\"please do\""}');
INSERT INTO "part" VALUES('prt_1f05405f3001hc6vRoPtoHXYA1','msg_1f05401d5001V3gBE8o7kt5ggL','ses_e0fac036effeJ0h3mn9k7AB00L',1795033400820,1795033400821,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f05405fd001kvdu1D4A3cC3Ak','msg_1f05401d5001V3gBE8o7kt5ggL','ses_e0fac036effeJ0h3mn9k7AB00L',1795033400830,1795033400923,'{"type":"text","text":"Looking","time":{"start":1795033400830,"end":1795033400922}}');
INSERT INTO "part" VALUES('prt_1f05406070014oYzgU3gnmK1x0','msg_1f05401d5001V3gBE8o7kt5ggL','ses_e0fac036effeJ0h3mn9k7AB00L',1795033400840,1795033401040,'{"type":"tool","tool":"bash","callID":"call_slow","state":{"metadata":{"output":"started\n"},"status":"running","input":{"command":"echo started; sleep 30; echo ended","description":"slow"},"time":{"start":1795033400871}}}');
INSERT INTO "part" VALUES('prt_1f0540631001reaPmx8TZlj3n4','msg_1f05401d5001V3gBE8o7kt5ggL','ses_e0fac036effeJ0h3mn9k7AB00L',1795033400886,1795033401072,'{"type":"tool","tool":"read","callID":"call_read","state":{"status":"completed","input":{"filePath":"/project/a.txt"},"output":"<path>/project/a.txt</path>\n<type>file</type>\n<content>\n1: hello\n\n(End of file - total 1 lines)\n</content>","metadata":{"preview":"hello","truncated":false,"loaded":[],"display":{"type":"file","path":"/project/a.txt","text":"hello","lineStart":1,"lineEnd":1,"totalLines":1,"truncated":false}},"title":"project/a.txt","time":{"start":1795033400918,"end":1795033401071}}}');
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795033397646,1795033397646,NULL,'[]',NULL);
INSERT INTO "session" VALUES('ses_e0fac036effeJ0h3mn9k7AB00L','global',NULL,NULL,'quick-garden','/project','project','t','1.18.33',NULL,0,0,0,NULL,NULL,0.0,0,0,0,0,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m","providerID":"local","variant":"default"}',1795033398417,1795033399799,NULL,NULL);

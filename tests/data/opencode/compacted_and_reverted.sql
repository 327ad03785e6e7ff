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
INSERT INTO "message" VALUES('msg_1f056ba8e001dRU3sr1VlUYB09','ses_e0fa9460effedvLy3B066IDaFU',1795033578126,1795033578139,'{"role":"user","time":{"created":1795033578126},"agent":"build","model":{"providerID":"local","modelID":"m"}}');
INSERT INTO "message" VALUES('msg_1f056bd3a001YoXD95uZMf2BOg','ses_e0fa9460effedvLy3B066IDaFU',1795033578810,1795033579829,'{"parentID":"msg_1f056ba8e001dRU3sr1VlUYB09","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"total":7686,"input":7673,"output":13,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"local","time":{"created":1795033578810,"completed":1795033579828},"finish":"tool-calls"}');
INSERT INTO "message" VALUES('msg_1f056c138001kFaqBOR7qCGmWD','ses_e0fa9460effedvLy3B066IDaFU',1795033579832,1795033579975,'{"parentID":"msg_1f056ba8e001dRU3sr1VlUYB09","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"total":7773,"input":7769,"output":4,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"local","time":{"created":1795033579832,"completed":1795033579974},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1f056d265001YBH9YaUD5wAeMf','ses_e0fa9460effedvLy3B066IDaFU',1795033584229,1795033584234,'{"role":"user","model":{"providerID":"local","modelID":"m"},"agent":"build","time":{"created":1795033584229}}');
INSERT INTO "message" VALUES('msg_1f056d521001EziGW6Bk6fHXMA','ses_e0fa9460effedvLy3B066IDaFU',1795033584929,1795033585008,'{"role":"assistant","parentID":"msg_1f056d265001YBH9YaUD5wAeMf","mode":"compaction","agent":"compaction","summary":true,"path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"total":598,"input":594,"output":4,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"local","time":{"created":1795033584929,"completed":1795033585005},"finish":"stop"}');
INSERT INTO "message" VALUES('msg_1f056d5810014AqW8JgucFckdN','ses_e0fa9460effedvLy3B066IDaFU',1795033585025,1795033585028,'{"role":"user","time":{"created":1795033585025},"agent":"build","model":{"providerID":"local","modelID":"m"}}');
INSERT INTO "message" VALUES('msg_1f056d597001mhDU8pWfG7i429','ses_e0fa9460effedvLy3B066IDaFU',1795033585048,1795033585565,'{"parentID":"msg_1f056d5810014AqW8JgucFckdN","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/project","root":"/"},"cost":0,"tokens":{"total":7709,"input":7703,"output":6,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"local","time":{"created":1795033585048,"completed":1795033585565},"finish":"stop"}');
INSERT INTO "part" VALUES('prt_1f056ba95001dKOw2JOhW3ISJl','msg_1f056ba8e001dRU3sr1VlUYB09','ses_e0fa9460effedvLy3B066IDaFU',1795033578140,1795033578141,'{"type":"text","text":"\"please do\""}');
INSERT INTO "part" VALUES('prt_1f056c0ba001rV0aKqSeZAVU52','msg_1f056bd3a001YoXD95uZMf2BOg','ses_e0fa9460effedvLy3B066IDaFU',1795033579706,1795033579708,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f056c0c1001S22K6E4YsNR8MZ','msg_1f056bd3a001YoXD95uZMf2BOg','ses_e0fa9460effedvLy3B066IDaFU',1795033579714,1795033579754,'{"type":"text","text":"Looking","time":{"start":1795033579713,"end":1795033579753}}');
INSERT INTO "part" VALUES('prt_1f056c0c8001GPfw9bz9XysMS6','msg_1f056bd3a001YoXD95uZMf2BOg','ses_e0fa9460effedvLy3B066IDaFU',1795033579720,1795033579816,'{"type":"tool","tool":"read","callID":"call_read","state":{"status":"completed","input":{"filePath":"/project/a.txt"},"output":"<path>/project/a.txt</path>\n<type>file</type>\n<content>\n1: hello\n\n(End of file - total 1 lines)\n</content>","metadata":{"preview":"hello","truncated":false,"loaded":[],"display":{"type":"file","path":"/project/a.txt","text":"hello","lineStart":1,"lineEnd":1,"totalLines":1,"truncated":false}},"title":"project/a.txt","time":{"start":1795033579748,"end":1795033579814}}}');
INSERT INTO "part" VALUES('prt_1f056c12b001ZTEh6W7d7p0XY4','msg_1f056bd3a001YoXD95uZMf2BOg','ses_e0fa9460effedvLy3B066IDaFU',1795033579820,1795033579820,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":7686,"input":7673,"output":13,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO "part" VALUES('prt_1f056c1ae001HG5Qqahi4Mcso0','msg_1f056c138001kFaqBOR7qCGmWD','ses_e0fa9460effedvLy3B066IDaFU',1795033579950,1795033579952,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f056c1b40018sOVW1iCg9qATm','msg_1f056c138001kFaqBOR7qCGmWD','ses_e0fa9460effedvLy3B066IDaFU',1795033579956,1795033579959,'{"type":"text","text":"It says hello","time":{"start":1795033579956,"end":1795033579959}}');
INSERT INTO "part" VALUES('prt_1f056c1b8001c2EMkWFTNM48NX','msg_1f056c138001kFaqBOR7qCGmWD','ses_e0fa9460effedvLy3B066IDaFU',1795033579960,1795033579961,'{"reason":"stop","type":"step-finish","tokens":{"total":7773,"input":7769,"output":4,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO "part" VALUES('prt_1f056d26c001qHguG32vuWVAP9','msg_1f056d265001YBH9YaUD5wAeMf','ses_e0fa9460effedvLy3B066IDaFU',1795033584236,1795033584238,'{"type":"compaction","auto":false}');
INSERT INTO "part" VALUES('prt_1f056d559001EwzYuUssgbtKhK','msg_1f056d521001EziGW6Bk6fHXMA','ses_e0fa9460effedvLy3B066IDaFU',1795033584985,1795033584987,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f056d55c001gJsJ7AzPmDAM7I','msg_1f056d521001EziGW6Bk6fHXMA','ses_e0fa9460effedvLy3B066IDaFU',1795033584989,1795033584995,'{"type":"text","text":"SUMMARY of it","time":{"start":1795033584988,"end":1795033584994}}');
INSERT INTO "part" VALUES('prt_1f056d5670017kR1fxUSJzZ11p','msg_1f056d521001EziGW6Bk6fHXMA','ses_e0fa9460effedvLy3B066IDaFU',1795033584999,1795033585000,'{"reason":"stop","type":"step-finish","tokens":{"total":598,"input":594,"output":4,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO "part" VALUES('prt_1f056d583001wlExC6i5Q6G3yZ','msg_1f056d5810014AqW8JgucFckdN','ses_e0fa9460effedvLy3B066IDaFU',1795033585029,1795033585030,'{"type":"text","text":"again please"}');
INSERT INTO "part" VALUES('prt_1f056d790001YhEtJQxoPTJZIF','msg_1f056d597001mhDU8pWfG7i429','ses_e0fa9460effedvLy3B066IDaFU',1795033585552,1795033585554,'{"type":"step-start"}');
INSERT INTO "part" VALUES('prt_1f056d793001puI4AcwIGn7nhG','msg_1f056d597001mhDU8pWfG7i429','ses_e0fa9460effedvLy3B066IDaFU',1795033585555,1795033585559,'{"type":"text","text":"continued after summary","time":{"start":1795033585555,"end":1795033585558}}');
INSERT INTO "part" VALUES('prt_1f056d798001sJ7DV3Y9Go6vp9','msg_1f056d597001mhDU8pWfG7i429','ses_e0fa9460effedvLy3B066IDaFU',1795033585561,1795033585561,'{"reason":"stop","type":"step-finish","tokens":{"total":7709,"input":7703,"output":6,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO "project" VALUES('global','/',NULL,NULL,NULL,NULL,NULL,1795033577149,1795033586609,NULL,'[]',NULL);
INSERT INTO "session" VALUES('ses_e0fa9460effedvLy3B066IDaFU','global',NULL,NULL,'shiny-harbor','/project','project','t','1.18.33',NULL,0,0,0,NULL,NULL,0.0,23739,27,0,0,0,'{"messageID":"msg_1f056d5810014AqW8JgucFckdN"}','[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m","providerID":"local","variant":"default"}',1795033577969,1795033585607,NULL,NULL);

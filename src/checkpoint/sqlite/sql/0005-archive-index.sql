-- Where archived text is found: the trigrams of each source's folded text and no more. Its rowid is the message's id, with a
-- minus before it. `scope` and `block` are three characters each, for the thread within a block of ids and for the block.
CREATE VIRTUAL TABLE everthread_archive_index USING fts5 (
  scope, block, text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
UPDATE everthread_schema SET version = 2;

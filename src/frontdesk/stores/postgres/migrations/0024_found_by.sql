-- A number by which whoever wrote a message finds it again. The feed's numbers are given by a sequence here, as before.
ALTER TABLE messages ADD COLUMN found_by BIGINT;

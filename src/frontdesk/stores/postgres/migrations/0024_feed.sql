-- Numbers of the feed are given by a sequence here, which costs a message nothing.
SELECT 1;

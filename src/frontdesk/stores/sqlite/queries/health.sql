-- name: store_bytes
-- How large the file is.
SELECT c.page_count * s.page_size FROM pragma_page_count() AS c, pragma_page_size() AS s;

-- name: living_nodes
-- The nodes that show that they live: nobody does.
SELECT number FROM nodes WHERE :scope IS NULL;

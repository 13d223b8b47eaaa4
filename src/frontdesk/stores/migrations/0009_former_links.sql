-- Links that have ended: for a while their people still count as one where votes are counted.

CREATE TABLE former_links (
    principal TEXT NOT NULL,
    person TEXT NOT NULL,
    ended_at /*pg BIG*/INT NOT NULL,
    PRIMARY KEY (principal, person)
);

CREATE INDEX former_links_by_person ON former_links (person);

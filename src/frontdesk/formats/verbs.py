"""What programs do that is worth a look: a table by their names."""

from collections.abc import Mapping

from frontdesk.formats.statements import Verb

_D = r"(?:^|\s)"
_SYSTEM = r"(?:/(?:etc|boot|usr|bin|sbin|lib)(?:/|\s|$)|(?:^|/)\.ssh(?:/|\s|$))"
_LAST = r"(?:\s+-\S+)*\s*$"
_GIVEN = r"(?:[+=-][rwxXst]*)*?[+=][rwxXst]*"
_RECURSIVE = rf"{_D}(?:-\w*[rR]|--recursive)"
DOES: tuple[tuple[str, str | tuple[str, ...], Verb], ...] = (
    (
        "rm",
        (_RECURSIVE, rf"{_D}(?:/|~|\.|\*|/\*|~/\*?|\./?\*?|\$HOME/?)(?:\s|$)"),
        Verb(10, "deletes everything", "Deletes everything in a whole tree"),
    ),
    (
        "rm",
        _RECURSIVE,
        Verb(9, "deletes folders", "Deletes folders with all that is in them"),
    ),
    (
        "rmdir|rd|del|erase|remove-item",
        rf"(?i){_D}(?:/s|-r\w*)\b",
        Verb(9, "deletes folders", "Deletes folders with all that is in them"),
    ),
    ("rm|unlink|rmdir|rd|del|erase|remove-item", r"\S", Verb(6, "deletes files", "Deletes files")),
    ("clear-content|clear-recyclebin", "", Verb(6, "deletes files", "Empties files, or what was deleted")),
    (
        "shred|srm|wipefs|blkdiscard|lvremove|vgremove|pvremove",
        "",
        Verb(9, "destroys", "Destroys what cannot be had back"),
    ),
    (
        "cryptsetup|zfs|zpool|btrfs|hdparm|nvme|diskutil|vssadmin|wbadmin|tmutil|gpg",
        r"(?i)erase|format|destroy|rollback|delete|reformat|sanitize",
        Verb(9, "destroys", "Destroys what cannot be had back"),
    ),
    ("dd", r"\bof=/dev/", Verb(10, "overwrites a disk", "Overwrites a disk")),
    ("dd|truncate", r"\bof=|-s", Verb(6, "overwrites a file", "Overwrites a file")),
    (
        "mkfs|mke2fs|mkswap|fdisk|sfdisk|sgdisk|parted|format|format-volume|clear-disk|initialize-disk|diskpart",
        r"^(?!(?:-l|--list)\b)(?!.*\bprint$)",
        Verb(9, "formats a disk", "Changes a disk as a whole"),
    ),
    ("find", r"-delete\b", Verb(8, "deletes files", "Deletes whatever is found")),
    (
        "git",
        (r"\bpush\b", rf"{_D}(?:-\w*f|--force|--mirror|--delete|-d\b|[+:])"),
        Verb(8, "overwrites elsewhere", "Overwrites or deletes what others have: a forced push"),
    ),
    ("git", r"\bpush\b", Verb(3, "publishes", "Sends commits to others")),
    *(
        ("git", patterns, Verb(7, "discards work", "Discards work that is nowhere else"))
        for patterns in (
            (r"\bfilter-(?:branch|repo)|\bstash (?:drop|clear)|\breflog expire",),
            (r"^(?!log\b|show\b|grep\b)", r"\breset\b", "--hard"),
            (r"\bclean\b", rf"{_D}-\w*f|--force"),
            (r"\bbranch\b", rf"{_D}-\w*D"),
            (r"\bcheckout\b", r"-f\b|--force|\s\.(?:\s|$)"),
            (r"\bupdate-ref\b", rf"{_D}-d"),
            (r"^(?:-C \S+ )?restore\b(?!.*--staged)",),
            (r"\brestore\b", rf"{_D}(?:--worktree|-\w*W)"),
            (r"\bworktree remove\b", rf"{_D}-\w*f|--force"),
            (r"\bgc\b", "--prune=now"),
        )
    ),
    (
        "git",
        (r"\bconfig\b", r"(?i)hookspath|sshcommand|fsmonitor|insteadof|credential\.helper|\balias\."),
        Verb(6, "runs later", "Has git run something later, or fetch from elsewhere"),
    ),
    ("git", r"\bremote (?:set-url|add)\b", Verb(4, "another remote", "Changes where git sends and fetches")),
    (
        "kubectl|oc",
        r"\b(?:delete|drain)\b|--replicas[= ]0\b|\breplace --force\b",
        Verb(8, "deletes", "Deletes in a cluster"),
    ),
    (
        "kubectl|oc",
        r"\bcreate (?:cluster)?rolebinding\b|\badm policy add",
        Verb(8, "grants rights", "Gives rights in a cluster"),
    ),
    (
        "nomad|consul|vault|etcdctl|rabbitmqctl|kafka-topics|influx|crictl|velero|pg_dropcluster|pg_ctl",
        r"\b(?:del|delete\w*|destroy|reset|purge|revoke|stop|rmi|restore)\b|--delete|^\d",
        Verb(8, "deletes or stops", "Deletes or stops something at a service"),
    ),
    ("helm", r"\b(?:uninstall|delete)\b", Verb(8, "deletes", "Deletes in a cluster")),
    (
        "kubectl|oc|helm",
        r"\b(?:apply|install|upgrade|rollout (?!status|history))\b",
        Verb(3, "deploys", "Changes a cluster"),
    ),
    (
        "terraform|tofu|pulumi|cdk|terragrunt",
        r"\b(?:destroy|down)\b|-destroy\b",
        Verb(9, "destroys", "Destroys infrastructure"),
    ),
    ("terraform|tofu|terragrunt", r"\bapply\b", Verb(5, "changes much", "Changes infrastructure")),
    (
        "terraform|tofu|terragrunt",
        r"\bstate (?:rm|push|mv)\b|\b(?:taint|force-unlock)\b|\bworkspace delete\b",
        Verb(6, "changes much", "Changes what is known of infrastructure"),
    ),
    (
        "ansible|ansible-playbook",
        r"^(?!.*(?:--check|--syntax-check|--list-\w+|-m (?:ping|setup))\b)",
        Verb(5, "changes much", "Changes other machines"),
    ),
    (
        "docker|podman|nerdctl|docker-compose|podman-compose",
        rf"{_D}(?:prune|rmi?|kill)\b",
        Verb(6, "deletes", "Deletes containers, images or volumes"),
    ),
    (
        "docker|podman|nerdctl|docker-compose|podman-compose",
        (r"\bdown\b", rf"{_D}(?:-v|--volumes)"),
        Verb(6, "deletes", "Deletes containers, images or volumes"),
    ),
    (
        "docker|podman|nerdctl|docker-compose|podman-compose",
        r"^(?:-\S+ \S+ )*(?:compose (?:-\S+ \S+ )*|container )?stop\b",
        Verb(5, "stops a service", "Stops containers"),
    ),
    (
        "docker|podman|nerdctl",
        r"--privileged|-v\s*/:|--volume[= ]/:|--pid[= ]host|docker\.sock",
        Verb(8, "grants rights", "Gives a container the whole machine"),
    ),
    (
        "aws|gcloud|az|gsutil|flyctl|fly|heroku|doctl|gh|s3cmd|mc|rclone|wrangler|supabase|railway|vercel|netlify",
        rf"{_D}(?:rm|rb|del|delete|destroy|purge|terminate|remove)(?:-[\w-]+)?(?:\s|$)"
        r"|:destroy|:reset|--delete\b|\bdb reset\b|schedule-key-deletion|\bdisable-key\b",
        Verb(8, "deletes", "Deletes in a cloud"),
    ),
    (
        "aws|gcloud|az|gsutil",
        r"(?:attach|put)-[\w-]*policy|create-(?:access-key|user|login-profile)|add-user-to-group"
        r"|put-bucket-acl|--acl public|authorize-security-group|public-access-block|\badd-permission\b"
        r"|add-iam-policy-binding|set-iam-policy|role assignment create|\biam ch\b"
        r"|\bacl (?:ch|set)\b|allUsers",
        Verb(7, "grants rights", "Gives rights in a cloud, or opens something to everybody"),
    ),
    (
        "aws|gcloud|az",
        rf"{_D}(?:stop|reboot|deregister|deallocate)(?:-[\w-]+)?(?:\s|$)",
        Verb(6, "stops a service", "Stops something in a cloud"),
    ),
    (
        "vercel|netlify|wrangler|firebase|flyctl|fly|serverless|sls|eb|railway",
        r"--prod\b|\b(?:deploy|publish|rollback|up)\b",
        Verb(6, "deploys", "Puts something before its users"),
    ),
    (
        "prisma|rails|rake|knex|sequelize|alembic|flyway|liquibase|manage|artisan|mix|dotnet",
        r"\breset\b|--accept-data-loss|--force-reset|db:(?:drop|reset|purge|truncate)|\bdowngrade\b|\bflush\b"
        r"|migrate:(?:fresh|reset|rollback)|undo:all|ecto\.(?:drop|reset)|database drop|drop-all|^clean\b",
        Verb(9, "empties a database", "Empties a database, or takes it back"),
    ),
    ("pg_restore", r"--clean|-\w*c\b", Verb(8, "overwrites a database", "Overwrites what a database holds")),
    (
        "scp|rsync|sftp|ftp",
        rf"\s[\w.@-]{{2,}}:\S*{_LAST}",
        Verb(4, "sends files", "Sends files to another machine"),
    ),
    ("rsync", r"--delete|--remove-source", Verb(6, "deletes files", "Deletes files that are elsewhere")),
    (
        "npm|pnpm|yarn|cargo|twine|poetry|uv|gem|flit|hatch|vsce|docker|podman",
        r"\b(?:publish|upload|unpublish|yank|push)\b",
        Verb(7, "publishes", "Publishes something for others"),
    ),
    (
        "gh",
        r"\brelease create\b|\bpr merge\b",
        Verb(6, "publishes", "Publishes something, or merges it"),
    ),
    ("gh", (r"\brepo\b", "public"), Verb(6, "publishes", "Publishes something")),
    ("gh", r"\b(?:secret|variable) set\b", Verb(5, "changes a secret", "Changes what builds are run with")),
    (
        "pip|pip3|uv|pipx|npm|pnpm|yarn|cargo|go|gem",
        (r"\b(?:install|add|i)\b", r"\s(?:git\+|git@|https?://)"),
        Verb(6, "installs from afar", "Installs, and so runs, what an address gives"),
    ),
    (
        "apt|apt-get|dnf|yum|snap|pacman|apk|zypper",
        rf"{_D}(?:remove|purge|erase|autoremove|del|-R\w*)(?:\s|$)",
        Verb(6, "removes programs", "Removes programs, perhaps with their data"),
    ),
    (
        "chmod",
        r"\b[0-7]?[0-7]{2}[2367]\b|\b[4267][0-7]{3}\b"
        rf"|(?:^|[\s,])(?=[ug]*[oa])[ugoa]+{_GIVEN}w|(?:^|[\s,])[ugoa]*{_GIVEN}s",
        Verb(7, "grants rights", "Opens files to everybody, or lets them be run as their owner"),
    ),
    (
        "usermod|useradd|adduser|userdel|deluser|passwd|chpasswd|visudo|groupadd|gpasswd|setfacl|chown|icacls"
        "|ssh-copy-id",
        r"^(?!(?:-S|--status)\b)",
        Verb(6, "changes rights", "Changes who may do what"),
    ),
    (
        "net",
        (r"(?i)\b(?:user|localgroup|group|share)\b", r"(?i)/(?:add|delete|active)"),
        Verb(7, "changes rights", "Changes who may do what"),
    ),
    (
        "ip|ifconfig|ifdown|nmcli",
        rf"{_D}(?:down|del|delete|flush|off)\b",
        Verb(6, "cuts a network", "Changes the network"),
    ),
    (
        "iptables|ip6tables|nft|ufw|firewall-cmd|setenforce|netsh",
        r"^(?!(?:-[tnv]\S*(?: [a-z]+)? )*(?:-[nv]*[LS]|--list\S*|--state|--get\S*|status|list|show)\b)",
        Verb(6, "changes the firewall", "Changes a firewall"),
    ),
    (
        "systemctl|service|launchctl|rc-service|pm2|supervisorctl",
        rf"{_D}(?:stop|restart|disable|mask|kill|poweroff|reboot|halt|delete|bootout|unload)(?:\s|$)",
        Verb(6, "stops a service", "Stops a service"),
    ),
    (
        "stop-service|restart-service|stop-process",
        "",
        Verb(6, "stops a service", "Stops a service"),
    ),
    ("init|telinit", r"^[0-6]$", Verb(7, "stops the machine", "Stops the machine")),
    (
        "shutdown|reboot|halt|poweroff|stop-computer|restart-computer",
        "",
        Verb(7, "stops the machine", "Stops the machine"),
    ),
    ("kill|pkill|killall|taskkill", r"^(?!-(?:0|l)\b)", Verb(5, "ends programs", "Ends programs that run")),
    ("dropdb|dropuser", "", Verb(9, "drops", "Drops what a database holds")),
    ("mysqladmin|mariadb-admin", r"\b(?:drop|shutdown)\b", Verb(9, "drops or stops", "Ends a database")),
    (
        "redis-cli|valkey-cli|mongo|mongosh",
        r"(?i)\b(?:flushall|flushdb|shutdown|dropDatabase|drop|deleteMany)\b"
        r"|\.remove\(",
        Verb(9, "empties a database", "Empties or ends a database"),
    ),
    ("redis-cli|valkey-cli", rf"(?i){_D}(?:del|unlink) ", Verb(6, "deletes", "Deletes in a database")),
    (
        "crontab|at|batch|schtasks",
        r"(?i)^(?!(?:-l(?: -u \S+)?|/query.*)$)",
        Verb(6, "runs later", "Has something run later, when nobody looks"),
    ),
    ("nc|ncat|socat|netcat", r"-\w*[ec]\b|exec:", Verb(9, "lets others in", "Gives others a shell")),
    ("unset", "HISTFILE", Verb(5, "hides traces", "Keeps no record of what is done")),
    ("history", r"-c\b", Verb(5, "hides traces", "Forgets what was done")),
    (
        "mv|tee",
        rf"{_D}{_SYSTEM}|/\.ssh/|/dev/(?:sd|nvme|null)",
        Verb(6, "changes the system", "Changes files of the system"),
    ),
    (
        "cp|ln|install",
        rf"{_D}{_SYSTEM}\S*{_LAST}|/\.ssh(?:/\S*)?{_LAST}|/dev/(?:sd|nvme)"
        rf"|(?:-t|--target-directory)[ =]?{_SYSTEM}",
        Verb(6, "changes the system", "Changes files of the system"),
    ),
    (
        "curl|wget",
        rf"(?:-[oO]|--output|--output-document)[ =]?{_SYSTEM}",
        Verb(7, "changes the system", "Changes files of the system"),
    ),
    (
        "sed|perl",
        (rf"{_D}(?:-\w*i|--in-place)", rf"{_D}{_SYSTEM}"),
        Verb(7, "changes the system", "Changes files of the system"),
    ),
    (
        "chattr|modprobe|insmod|rmmod|csrutil|spctl|bcdedit|set-executionpolicy",
        r"^(?!status\b|--status\b)",
        Verb(6, "changes the system", "Changes how the system is guarded, or what it runs"),
    ),
    ("mount", "remount", Verb(6, "changes the system", "Changes how the system is guarded")),
    ("sysctl", rf"{_D}-\w*w|=", Verb(6, "changes the system", "Changes how the system runs")),
    (
        "reg|defaults",
        r"(?i)^(?:add|delete|import|write)\b",
        Verb(6, "changes the system", "Changes settings of the system"),
    ),
    ("sudo|doas|pkexec|su|runas", "", Verb(3, "as administrator", "Has the rights of an administrator")),
    (
        "stripe|paypal|bitcoin-cli|eth|solana|cast",
        r"\b(?:send|transfer|pay|payouts?|charges?|sendtoaddress|sendmany|refunds?|create)\b",
        Verb(8, "moves money", "Moves money"),
    ),
)

_DELETES = Verb(6, "deletes", "Deletes something, by its name")
_DESTROYS = Verb(8, "destroys", "Destroys something, by its name")
_SPENDS = Verb(8, "moves money", "Moves money, by its name")
_PUBLISHES = Verb(6, "publishes", "Publishes something, by its name")
_GRANTS = Verb(7, "grants rights", "Gives rights, by its name")
_STOPS = Verb(6, "stops a service", "Stops something, by its name")
NAMED: Mapping[str, Verb] = {
    **dict.fromkeys(("delete", "remove", "erase", "uninstall", "unpublish"), _DELETES),
    **dict.fromkeys(("drop", "destroy", "wipe", "purge", "truncate", "terminate", "format"), _DESTROYS),
    **dict.fromkeys(("pay", "transfer", "buy", "sell", "purchase", "refund", "withdraw", "payout"), _SPENDS),
    **dict.fromkeys(("publish", "tweet", "broadcast", "public"), _PUBLISHES),
    **dict.fromkeys(("grant", "revoke", "sudo", "impersonate"), _GRANTS),
    **dict.fromkeys(("shutdown", "reboot", "restart", "stop", "kill", "disable"), _STOPS),
}
"""What a word in the name of an action says."""
LOOKS = frozenset(
    (
        "get",
        "list",
        "search",
        "find",
        "read",
        "show",
        "describe",
        "count",
        "check",
        "preview",
        "view",
        "lookup",
    )
)
"""Words at the beginning of a name that only looks."""

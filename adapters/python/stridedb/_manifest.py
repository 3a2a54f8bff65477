"""Manifests of tables in shards: which databases a table has its rows in, and how that changes at once.

A directory has ``manifest-000001.json`` and so on, of which the newest one counts, and ``shards/JOB/SHARD-ATTEMPT/``,
databases that never change once a manifest names them. docs/cluster.md describes both, and how they are committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
import uuid
from typing import Any, Dict, List, Optional

from .errors import Conflict, Corruption, InvalidArgument, NotFound, UnsupportedVersion

FORMAT = 1
Entry = Dict[str, Any]  # what a manifest says of a table
_NAME = re.compile(r"manifest-(\d{6,})\.json")
_KEPT_JOBS = 10_000  # whose repetition is told from a new job


def _versions(path: str) -> List[int]:
    names = os.listdir(path) if os.path.isdir(path) else []
    return sorted(int(m[1]) for m in map(_NAME.fullmatch, names) if m)


def _file(path: str, version: int) -> str:
    return os.path.join(path, f"manifest-{version:06d}.json")


def read_manifest(path: str, version: Optional[int] = None) -> Dict[str, Any]:
    """The newest manifest of a directory, or that of a version; an empty one, of version 0, where there is none yet.

    NotFound: there is none of that version. InvalidArgument, Corruption, UnsupportedVersion.
    """
    if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 1):
        raise InvalidArgument(f"version is {version!r}", remedy="give the number of a manifest, from 1 on, or None")
    if os.path.exists(path) and not os.path.isdir(path):
        raise InvalidArgument(f"{path!r} is no directory", remedy="give a directory that all nodes see")
    while True:
        wanted = max(_versions(path), default=0) if version is None else version
        if wanted == 0:
            return {"format": FORMAT, "version": 0, "tables": {}, "jobs": {}}
        file = _file(path, wanted)
        try:
            with open(file, "rb") as f:
                text, _, checksum = f.read().rstrip(b"\n").rpartition(b"\n")
            break
        except FileNotFoundError:
            if version is not None:
                raise NotFound(f"there is no manifest of version {version}", file=file) from None
            # sweep() has removed it, after a newer one came.
    if hashlib.sha256(text).hexdigest().encode() != checksum:
        raise Corruption("the manifest's checksum does not match", file=file, remedy="restore the file from a backup")
    return _checked(text, wanted, file)


def _checked(text: bytes, version: int, file: str) -> Dict[str, Any]:
    """A manifest of a text. Corruption: that is none, though its checksum is right."""
    try:
        manifest: Dict[str, Any] = json.loads(text)
        if manifest["format"] > FORMAT:
            raise UnsupportedVersion(
                f"the manifest is of format {manifest['format']}, and this version of StrideDB reads {FORMAT}",
                file=file, remedy="use a newer version",
            )
        good = manifest["version"] == version and all(isinstance(job, str) for job in manifest["jobs"].values())
        for entry in manifest["tables"].values():
            shards, splitters = entry["shards"], entry["splitters"]
            good &= entry["kind"] in ("rows", "prefixes", "counters", "dedup") and len(shards) > 0
            columns = [(name + type) for name, type in entry["key"] + entry["values"]]
            good &= all(isinstance(column, str) for column in columns) and len(entry["key"]) > 0
            good &= splitters is None or len([bytes.fromhex(s) for s in splitters]) == len(shards) - 1
            good &= isinstance(entry["job"], str) and entry["rows"] == sum(shard["rows"] for shard in shards)
            for i, shard in enumerate(shards):
                inside = re.fullmatch(r"shards/[^/]+/[^/]+", shard["directory"]) and ".." not in shard["directory"]
                good &= bool(inside) and shard["shard"] == i and isinstance(shard["checksum"], str)
                good &= isinstance(shard["bytes"], int) and {"first", "last"} <= set(shard)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corruption(f"the manifest is malformed: {error!r}", file=file, remedy="restore it from a backup") from None
    if not good:
        raise Corruption("the manifest contradicts itself", file=file, remedy="restore it from a backup")
    return manifest


def table_entry(path: str, table: str, version: Optional[int] = None) -> Entry:
    """What a manifest says of a table, and the manifest's version. NotFound: there is no table of that name."""
    manifest = read_manifest(path, version)
    if table not in manifest["tables"]:
        names = ", ".join(sorted(manifest["tables"])) or "none"
        raise NotFound(f"there is no table {table!r} in {path!r}", remedy=f"the tables are: {names}")
    return dict(manifest["tables"][table], version=manifest["version"])


def sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_shard(path: str, table: str, shard: Dict[str, Any]) -> str:
    """The directory of a shard. NotFound, Corruption: it is not there, or another one than its job has made."""
    directory, number = os.path.join(path, shard["directory"]), shard["shard"]
    if not os.path.isdir(directory):
        raise NotFound(f"shard {number} of table {table!r} is not there", file=directory,
                       remedy="make it visible to all nodes, restore it, or write the table again")
    if database_checksum(directory) != shard["checksum"]:
        job = shard["directory"].split("/")[1]
        raise Corruption(f"shard {number} of table {table!r} is not the one that job {job!r} has built", file=directory,
                         remedy="restore it, or write the table again; never write to a shard")
    return directory


def commit(path: str, table: str, entry: Entry, before: Optional[str]) -> Entry:
    """Makes an entry the table's, durably and at once, and returns the one that counts: where the entry's job was
    committed before, that of then, and nothing changes.

    before: the job whose entry the table had when this job began; None: there was none. Conflict: another job has
    changed the table since. NotFound, Corruption: a shard has gone or changed since it was built.
    """
    job = entry["job"]
    os.utime(os.path.join(path, "shards", job))  # so sweep() lets its shards be
    while True:
        now = read_manifest(path)
        if job in now["jobs"]:
            # The manifest that made it known may not be durable yet: its driver died before it was.
            sync_directory(path)
            return dict(now["tables"].get(now["jobs"][job], entry), version=now["version"])
        there = now["tables"].get(table, {}).get("job")
        if there != before:
            raise Conflict(f"table {table!r} was changed by job {there!r} meanwhile", remedy="run the job again")
        for shard in entry["shards"]:
            check_shard(path, table, shard)
        version = now["version"] + 1
        jobs = dict([*now["jobs"].items(), (job, table)][-_KEPT_JOBS:])
        body = {"format": FORMAT, "version": version, "tables": {**now["tables"], table: entry}, "jobs": jobs}
        if _publish(path, version, json.dumps(body, separators=(",", ":")).encode()):
            newest = read_manifest(path)
            if newest["version"] == version or job in newest["jobs"]:
                return dict(entry, version=version)
            # This driver stood still while others went on, and the name was free since sweep() has removed theirs.
            os.unlink(_file(path, version))


def _publish(path: str, version: int, text: bytes) -> bool:
    """Gives a manifest its name, durably. False: another driver was faster."""
    temporary = os.path.join(path, f".manifest-{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as f:
            f.write(text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n")
            f.flush()
            os.fsync(f.fileno())
        # A second name, and the first one goes: as a rename, which would take the place of one that is there.
        os.link(temporary, _file(path, version))
    except FileExistsError:
        return False
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    sync_directory(path)
    return True


def sweep(path: str, age: float = 86_400.0) -> List[str]:
    """Removes what has been of no use for so many seconds: manifests that a newer one followed by then, and shards
    that no manifest names, which are of attempts that died or were replaced. Returns the names of what was removed.

    Whoever still reads a version that was followed longer ago fails. What a job builds stays while any of its shards
    was changed or opened within that time.
    """
    oldest = time.time() - age
    removed = []
    versions = _versions(path)
    for version, next_one in zip(versions, versions[1:]):
        if os.path.getmtime(_file(path, next_one)) < oldest:
            os.unlink(_file(path, version))
            removed.append(os.path.basename(_file(path, version)))
    for name in os.listdir(path):
        if name.startswith(".manifest-") and os.path.getmtime(os.path.join(path, name)) < oldest:
            os.unlink(os.path.join(path, name))
            removed.append(name)
    # Attempts first: what is named afterwards by no manifest, and is old, never will be.
    jobs = [(job, _directories(job)) for job in _directories(os.path.join(path, "shards"))]
    named = set()
    for version in _versions(path):
        for entry in read_manifest(path, version)["tables"].values():
            named |= {os.path.join(path, shard["directory"]) for shard in entry["shards"]}
    for job, attempts in jobs:
        if max(map(_last_change, [job, *attempts])) >= oldest:
            continue
        for attempt in attempts:
            if attempt not in named:
                shutil.rmtree(attempt, ignore_errors=True)
                removed.append(os.path.relpath(attempt, path))
        if not os.listdir(job):
            os.rmdir(job)
    return removed


def _directories(path: str) -> List[str]:
    return [e.path for e in os.scandir(path) if e.is_dir()] if os.path.isdir(path) else []


def _last_change(directory: str) -> float:
    """When a directory or a file in it has changed; 0: it is not there any more."""
    try:
        return max([os.path.getmtime(directory), *(e.stat().st_mtime for e in os.scandir(directory))])
    except FileNotFoundError:
        return 0.0


def database_checksum(directory: str) -> str:
    """Of all that a closed database says. Of a segment the last 64 bytes do: they have the checksum of its blocks'."""
    total = hashlib.sha256()
    for name in sorted(os.listdir(directory)):
        if not re.fullmatch(r"CURRENT|MANIFEST-\d+|\d+\.(seg|wal)", name):
            continue
        with open(os.path.join(directory, name), "rb") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - 64) if name.endswith(".seg") else 0)
            total.update(f"{name} {size} ".encode() + f.read())
    return total.hexdigest()

// A table of StrideDB. Keys are stored big-endian with the sign bit flipped, so that they ascend as
// signed numbers do; values as StrideDBTickFormat.cs says.
using System;
using System.Collections;
using System.Collections.Generic;
using DatabaseBenchmark.Core;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// Any number of threads may use it at once. Write, the deletes and the indexer are committed
    /// when they return; a reader sees the table as it was when its first record was asked for.
    /// </summary>
    internal sealed unsafe class StrideDBTable : ITable<long, Tick>
    {
        private readonly string name;
        private readonly StrideDBDatabase database;
        private readonly StrideDBDatabaseHandle opened;
        private readonly StrideDBTableHandle table;

        internal StrideDBTable(string name, StrideDBDatabase database,
                               StrideDBDatabaseHandle opened, StrideDBTableHandle table)
        {
            this.name = name;
            this.database = database;
            this.opened = opened;
            this.table = table;
        }

        internal StrideDBTableHandle Handle
        {
            get { return table; }
        }

        /// <summary>
        /// What the table belongs to. Once that is closed the table is of no use, also where the
        /// database has been opened again, for it may be another one then.
        /// </summary>
        internal StrideDBDatabaseHandle DatabaseHandle
        {
            get
            {
                if (opened.IsClosed)
                {
                    throw new InvalidOperationException("the database of table '" + name +
                        "' has been closed: open it, and the table with OpenOrCreateTable()");
                }

                return opened;
            }
        }

        public string Name
        {
            get { return name; }
        }

        public IDatabase Database
        {
            get { return database; }
        }

        /// <summary>
        /// Puts all records, or none where this throws. The last one of equal keys stays; where several
        /// threads put them, any.
        /// </summary>
        public void Write(IEnumerable<KeyValuePair<long, Tick>> records)
        {
            using (StrideDBLoad load = new StrideDBLoad(DatabaseHandle, table))
            {
                using (StrideDBPipe pipe = new StrideDBPipe(load))
                    pipe.Add(records);

                load.Commit(database.Durability);
            }
        }

        /// <summary>The records of `from` to `to`, both included, in ascending order.</summary>
        public IEnumerable<KeyValuePair<long, Tick>> Read(long from, long to)
        {
            return new StrideDBRows(this, from, to);
        }

        public IEnumerable<KeyValuePair<long, Tick>> Read()
        {
            return Read(long.MinValue, long.MaxValue);
        }

        public void Delete(long key)
        {
            using (StrideDBLoad load = new StrideDBLoad(DatabaseHandle, table))
            {
                load.Erase(key);
                load.Commit(database.Durability);
            }
        }

        /// <summary>Erases the records of `from` to `to`, both included.</summary>
        public void Delete(long from, long to)
        {
            if (from > to)
                return;

            using (StrideDBLoad load = new StrideDBLoad(DatabaseHandle, table))
            {
                load.Erase(from, to);
                load.Commit(database.Durability);
            }
        }

        /// <summary>KeyNotFoundException where there is no such record.</summary>
        public Tick this[long key]
        {
            get
            {
                using (StrideDBSnapshotHandle snapshot = StrideDBSnapshotHandle.Take(DatabaseHandle))
                {
                    ulong stored = StrideDBNative.ToKey(key);
                    StrideDBNative.Bytes value;
                    StrideDBNative.Check(StrideDBNative.stride_get_one(
                        snapshot, table, &stored, StrideDBNative.KeyBytes, out value));
                    if (value.Data == null)
                        throw new KeyNotFoundException("no record has the key " + key);

                    byte* data = (byte*)value.Data;
                    return new StrideDBTickDecoder().Read(data, data + value.Size);
                }
            }
            set
            {
                Write(new[] { new KeyValuePair<long, Tick>(key, value) });
            }
        }

        /// <summary>Ends the use of the table, not the table.</summary>
        public void Close()
        {
            table.Close();
        }

        public IEnumerator<KeyValuePair<long, Tick>> GetEnumerator()
        {
            return Read().GetEnumerator();
        }

        IEnumerator IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
        }
    }
}

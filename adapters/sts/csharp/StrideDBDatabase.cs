// StrideDB in STS DatabaseBenchmark: docs/sts.md says how to add it.
using System;
using System.ComponentModel;
using System.Drawing;
using System.IO;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Core.Attributes;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// A database of StrideDB, in a directory of its own below DataDirectory. Its tables may be used
    /// by any number of threads at once, also while it is being closed: they throw then.
    /// </summary>
    public class StrideDBDatabase : Database
    {
        private volatile StrideDBDatabaseHandle handle;

        /// <summary>
        /// What a commit has survived once it returned: 0 power loss, 1 the end of this process,
        /// 2 Close().
        /// </summary>
        [Category("Settings")]
        [DbParameter]
        public int Durability { get; set; }

        public override string IndexingTechnology
        {
            get { return "Radix tree over sorted runs"; }
        }

        public StrideDBDatabase()
        {
            SyncRoot = new object();

            Name = "StrideDB";
            CollectionName = "table1";
            Category = @"NoSQL\Key-Value Store";
            Description = "StrideDB, through its C interface";
            Website = "";
            Color = Color.FromArgb(0, 128, 128);

            Requirements = new string[]
            {
                "libstridedb.so"
            };
        }

        /// <summary>Opens or makes the database. One that is still open is closed before.</summary>
        public override void Open()
        {
            Close();

            string path = Path.Combine(DataDirectory, "stridedb");
            IntPtr made;
            unsafe
            {
                StrideDBNative.Check(
                    StrideDBNative.stride_open(StrideDBNative.ToUtf8(path), null, out made));
            }
            lock (SyncRoot)
                handle = new StrideDBDatabaseHandle(made);
        }

        public override ITable<long, Tick> OpenOrCreateTable(string name)
        {
            StrideDBDatabaseHandle open = Handle;
            IntPtr made;
            StrideDBNative.Check(StrideDBNative.stride_table_open_or_create(
                open, StrideDBNative.ToUtf8(name), StrideDBNative.KeyBytes, out made));

            return new StrideDBTable(name, this, open, new StrideDBTableHandle(made));
        }

        /// <summary>Drops the table and its records. One that is not there is fine.</summary>
        public override void DeleteTable(string name)
        {
            int status = StrideDBNative.stride_table_drop(Handle, StrideDBNative.ToUtf8(name));
            if (status != StrideDBNative.NotFound)
                StrideDBNative.Check(status);
        }

        /// <summary>
        /// Makes everything durable and ends, once calls that other threads have begun have returned.
        /// A database that is not open is fine.
        /// </summary>
        public override void Close()
        {
            StrideDBDatabaseHandle closing;
            lock (SyncRoot)
            {
                closing = handle;
                handle = null;
            }
            if (closing == null)
                return;

            closing.CloseAndWait();
            if (closing.Failure != null)
                throw closing.Failure;
        }

        /// <summary>Bytes of all files. Cheap while the database is open.</summary>
        [Browsable(false)]
        public override long Size
        {
            get
            {
                StrideDBDatabaseHandle open = handle;
                if (open == null)
                    return base.Size;

                ulong bytes;
                StrideDBNative.Check(StrideDBNative.stride_size(open, out bytes));

                return (long)bytes;
            }
        }

        internal StrideDBDatabaseHandle Handle
        {
            get
            {
                StrideDBDatabaseHandle open = handle;
                if (open == null)
                    throw new InvalidOperationException("StrideDB is not open: call Open() before");

                return open;
            }
        }
    }
}

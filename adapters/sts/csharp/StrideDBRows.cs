// Ordered reading: batches of columns from the engine, decoded one record at a time.
using System;
using System.Collections;
using System.Collections.Generic;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>The records of a range of keys, both ends included.</summary>
    internal sealed class StrideDBRows : IEnumerable<KeyValuePair<long, Tick>>
    {
        private readonly StrideDBTable table;
        private readonly long from;
        private readonly long to;

        internal StrideDBRows(StrideDBTable table, long from, long to)
        {
            this.table = table;
            this.from = from;
            this.to = to;
        }

        public IEnumerator<KeyValuePair<long, Tick>> GetEnumerator()
        {
            return new Cursor(this);
        }

        IEnumerator IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
        }

        // Opens with the first record, so that a reader that is made and never used costs nothing.
        private sealed unsafe class Cursor : IEnumerator<KeyValuePair<long, Tick>>
        {
            private readonly StrideDBRows rows;
            private readonly StrideDBTickDecoder decoder = new StrideDBTickDecoder();
            private StrideDBScanHandle scan;
            private bool ended;

            // What is left of the batch; views, until the scan's next one.
            private ulong* key;
            private ulong* keysEnd;
            private byte* values;
            private ulong* offset; // null where all values of the batch have valueBytes bytes
            private uint valueBytes;

            private long currentKey;
            private Tick currentTick;

            internal Cursor(StrideDBRows rows)
            {
                this.rows = rows;
            }

            public KeyValuePair<long, Tick> Current
            {
                get { return new KeyValuePair<long, Tick>(currentKey, currentTick); }
            }

            object IEnumerator.Current
            {
                get { return Current; }
            }

            public bool MoveNext()
            {
                if (key == keysEnd && !NextBatch())
                    return false;

                currentKey = StrideDBNative.FromKey(*key);
                key++;
                if (offset != null)
                {
                    currentTick = decoder.Read(values + offset[0], values + offset[1]);
                    offset++;
                }
                else
                {
                    currentTick = decoder.Read(values, values + valueBytes);
                    values += valueBytes;
                }

                return true;
            }

            public void Reset()
            {
                throw new NotSupportedException();
            }

            public void Dispose()
            {
                key = keysEnd = null;
                ended = true;
                if (scan != null)
                    scan.Close();
            }

            private bool NextBatch()
            {
                if (ended)
                    return false;
                if (scan == null)
                    Open();

                StrideDBNative.Column k, v;
                StrideDBNative.Check(StrideDBNative.stride_scan_next(scan, out k, out v));
                key = (ulong*)k.Data;
                keysEnd = key + k.Size;
                values = (byte*)v.Data;
                offset = v.Offsets;
                valueBytes = v.Width;
                ended = k.Size == 0;

                return !ended;
            }

            private void Open()
            {
                ulong from = StrideDBNative.ToKey(rows.from);
                ulong to = StrideDBNative.ToKey(rows.to);
                StrideDBNative.ScanOptions options;
                StrideDBNative.Check(StrideDBNative.stride_scan_options_init(
                    out options, (UIntPtr)sizeof(StrideDBNative.ScanOptions)));
                options.From.Data = &from;
                options.From.Size = StrideDBNative.KeyBytes;
                options.To.Data = &to;
                options.To.Size = StrideDBNative.KeyBytes;
                options.ToInclusive = 1;

                using (StrideDBSnapshotHandle snapshot =
                           StrideDBSnapshotHandle.Take(rows.table.DatabaseHandle))
                {
                    IntPtr made;
                    StrideDBNative.Check(StrideDBNative.stride_scan_open(
                        snapshot, rows.table.Handle, ref options, out made));
                    scan = new StrideDBScanHandle(made);
                }
            }
        }
    }
}

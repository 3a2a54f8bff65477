// How records get into a table: a transaction that is fed in blocks.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// One transaction that puts any number of records. Disposing of it without a commit leaves no
    /// trace. One thread at a time.
    /// </summary>
    internal sealed unsafe class StrideDBLoad : IDisposable
    {
        private const int BlockRows = 65536;
        // An ordinary block has room for 48 bytes of value a record.
        private const int BlockValueBytes = 48 * BlockRows;

        private readonly StrideDBTableHandle table;
        private readonly StrideDBTickEncoder encoder = new StrideDBTickEncoder();
        // The engine reads blocks until the transaction has ended.
        private readonly List<IntPtr> blocks = new List<IntPtr>();
        private IntPtr transaction;

        // The block that is being filled: keys as numbers, then stored; offsets of values; values.
        private long* numbers;
        private byte* keys;
        private ulong* offsets;
        private byte* values;
        private byte* end;
        private byte* at;
        private int rows;

        internal StrideDBLoad(StrideDBDatabaseHandle database, StrideDBTableHandle table)
        {
            this.table = table;
            StrideDBNative.Check(StrideDBNative.stride_begin(database, out transaction));
        }

        internal void Add(long key, Tick tick)
        {
            byte* next = rows < BlockRows ? encoder.Write(tick, at, end) : null;
            if (next == null)
            {
                Put();
                NewBlock(StrideDBTickEncoder.Room(tick));
                next = encoder.Write(tick, at, end);
            }

            numbers[rows] = key;
            rows++;
            at = next;
            offsets[rows] = (ulong)(next - values);
        }

        internal void Erase(long key)
        {
            Put();
            ulong stored = StrideDBNative.ToKey(key);
            StrideDBNative.Column one = new StrideDBNative.Column
            {
                Data = &stored, Size = 1, Width = StrideDBNative.KeyBytes
            };
            StrideDBNative.Check(StrideDBNative.stride_erase(transaction, table, ref one));
        }

        /// <summary>Erases the keys of `from` to `to`, both included.</summary>
        internal void Erase(long from, long to)
        {
            Put();
            ulong first = StrideDBNative.ToKey(from);
            ulong after = to == long.MaxValue ? 0 : StrideDBNative.ToKey(to + 1);
            StrideDBNative.Bytes begin = new StrideDBNative.Bytes
            {
                Data = &first, Size = StrideDBNative.KeyBytes
            };
            StrideDBNative.Bytes end = new StrideDBNative.Bytes
            {
                Data = &after, Size = StrideDBNative.KeyBytes
            };
            StrideDBNative.Check(StrideDBNative.stride_erase_range(
                transaction, table, &begin, to == long.MaxValue ? null : &end));
        }

        internal void Commit(int durability)
        {
            Put();
            if (durability < -1 || durability > 2)
                throw new ArgumentOutOfRangeException("durability");
            IntPtr ending = transaction;
            transaction = IntPtr.Zero;
            StrideDBNative.Check(StrideDBNative.stride_commit(ending, durability));
        }

        public void Dispose()
        {
            if (transaction != IntPtr.Zero)
                StrideDBNative.stride_abort(transaction);
            transaction = IntPtr.Zero;

            foreach (IntPtr block in blocks)
                Marshal.FreeHGlobal(block);
            blocks.Clear();
        }

        // room: value bytes that the block must have.
        private void NewBlock(int room)
        {
            if (numbers == null)
                numbers = (long*)NewMemory(8L * BlockRows);

            long valueBytes = Math.Max(BlockValueBytes, room);
            keys = NewMemory(8L * BlockRows + 8L * (BlockRows + 1) + valueBytes);
            offsets = (ulong*)(keys + 8L * BlockRows);
            values = (byte*)(offsets + BlockRows + 1);
            end = values + valueBytes;
            at = values;
            rows = 0;
            offsets[0] = 0;
        }

        private byte* NewMemory(long bytes)
        {
            IntPtr memory = Marshal.AllocHGlobal((IntPtr)bytes);
            blocks.Add(memory);

            return (byte*)memory;
        }

        private void Put()
        {
            if (rows == 0)
                return;

            StrideDBNative.Check(StrideDBNative.stride_int64_to_keys(numbers, (ulong)rows, keys));
            StrideDBNative.Column k = new StrideDBNative.Column
            {
                Data = keys, Size = (ulong)rows, Width = StrideDBNative.KeyBytes
            };
            StrideDBNative.Column v = new StrideDBNative.Column
            {
                Data = values, Offsets = offsets, Size = (ulong)rows
            };
            StrideDBNative.Check(StrideDBNative.stride_put_view(transaction, table, ref k, ref v));
            rows = 0;
            // The block is full, whatever room it has left.
            at = end = null;
        }
    }
}

// The caller's thread makes records, and they are encoded on another one.
using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Threading;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// Takes records from one thread and adds them to a load in the same order. A second thread is
    /// there from the moment that a chunk is full; what is less is added by the caller.
    /// </summary>
    internal sealed class StrideDBPipe : IDisposable
    {
        internal struct Row
        {
            internal long Key;
            internal Tick Tick;
        }

        // The garbage collector moves the records that wait here, so that more are no better; smaller
        // chunks cost more to hand over.
        private const int ChunkRows = 4096;
        private const int Chunks = 8;

        private readonly StrideDBLoad load;
        private readonly Queue<Row[]> full = new Queue<Row[]>();
        private readonly Queue<Row[]> empty = new Queue<Row[]>();
        private Thread thread;
        private int made = 1;
        private bool ending;
        private Exception failure;

        internal StrideDBPipe(StrideDBLoad load)
        {
            this.load = load;
        }

        /// <summary>Returns when all records are in the load.</summary>
        internal void Add(IEnumerable<KeyValuePair<long, Tick>> records)
        {
            Row[] rows = new Row[ChunkRows];
            int count = 0;
            foreach (KeyValuePair<long, Tick> record in records)
            {
                if (count == ChunkRows)
                {
                    rows = Exchange(rows);
                    count = 0;
                }
                rows[count].Key = record.Key;
                rows[count].Tick = record.Value;
                count++;
            }

            End();
            Encode(rows, count);
        }

        /// <summary>Ends the thread; what it has not added yet is dropped where Add() threw.</summary>
        public void Dispose()
        {
            lock (full)
                full.Clear();
            Join();
        }

        // Hands a full chunk over for an empty one.
        private Row[] Exchange(Row[] chunk)
        {
            lock (full)
            {
                full.Enqueue(chunk);
                if (thread == null)
                {
                    thread = new Thread(EncodeAll);
                    thread.IsBackground = true;
                    thread.Start();
                }
                Monitor.PulseAll(full);
                if (empty.Count == 0 && made < Chunks)
                {
                    made++;
                    return new Row[ChunkRows];
                }
                while (empty.Count == 0 && failure == null)
                    Monitor.Wait(full);
                ThrowFailure();

                return empty.Dequeue();
            }
        }

        private void End()
        {
            Join();
            ThrowFailure();
        }

        private void Join()
        {
            if (thread == null)
                return;

            lock (full)
            {
                ending = true;
                Monitor.PulseAll(full);
            }
            thread.Join();
            thread = null;
        }

        private void EncodeAll()
        {
            try
            {
                for (;;)
                {
                    Row[] chunk;
                    lock (full)
                    {
                        while (full.Count == 0 && !ending)
                            Monitor.Wait(full);
                        if (full.Count == 0)
                            return;
                        chunk = full.Dequeue();
                    }
                    Encode(chunk, ChunkRows);
                    lock (full)
                    {
                        empty.Enqueue(chunk);
                        Monitor.PulseAll(full);
                    }
                }
            }
            catch (Exception exception)
            {
                lock (full)
                {
                    failure = exception;
                    Monitor.PulseAll(full);
                }
            }
        }

        private void Encode(Row[] rows, int count)
        {
            for (int i = 0; i < count; i++)
            {
                load.Add(rows[i].Key, rows[i].Tick);
                rows[i].Tick = null;
            }
        }

        private void ThrowFailure()
        {
            if (failure != null)
                ExceptionDispatchInfo.Capture(failure).Throw();
        }
    }
}

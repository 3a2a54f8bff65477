// How long the write phase takes with StrideDB and with a database that only asks for the records, in
// one harness that works as the original's does: Open, DeleteTable and OpenOrCreateTable with the
// clock running; each flow on a thread of its own, made while it is written; and for each record a
// lock in which six counters count. Prints milliseconds, and those of all cores together, which tell
// more on a machine that has other work to do.
//
//   WriteTime.exe DIRECTORY RECORDS FLOWS ROUNDS [DURABILITY]
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading.Tasks;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Databases;
using STS.General.Generators;

namespace StrideDB.Tests
{
    /// <summary>Takes the records and forgets them.</summary>
    internal sealed class NullDatabase : Database, ITable<long, Tick>
    {
        public override void Open() { }
        public override ITable<long, Tick> OpenOrCreateTable(string name) { return this; }
        public override void DeleteTable(string name) { }
        public override void Close() { }
        public override long Size { get { return 0; } }

        string ITable<long, Tick>.Name { get { return "null"; } }
        IDatabase ITable<long, Tick>.Database { get { return this; } }

        public void Write(IEnumerable<KeyValuePair<long, Tick>> records)
        {
            foreach (KeyValuePair<long, Tick> record in records) { }
        }

        public IEnumerable<KeyValuePair<long, Tick>> Read(long from, long to) { return Read(); }
        public IEnumerable<KeyValuePair<long, Tick>> Read() { yield break; }
        public void Delete(long key) { }
        public void Delete(long from, long to) { }
        public Tick this[long key] { get { return null; } set { } }
        public IEnumerator<KeyValuePair<long, Tick>> GetEnumerator() { return Read().GetEnumerator(); }
        System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
        }
    }

    /// <summary>Counts records, and at each hundredth of them looks at the clock.</summary>
    internal sealed class Counter
    {
        private readonly List<KeyValuePair<long, TimeSpan>> times =
            new List<KeyValuePair<long, TimeSpan>>(100);
        private readonly Stopwatch clock;
        private readonly long step;
        private long count;

        internal Counter(Stopwatch clock, long step)
        {
            this.clock = clock;
            this.step = step;
        }

        internal void Add()
        {
            count++;
            if (count % step == 0)
                times.Add(new KeyValuePair<long, TimeSpan>(count, clock.Elapsed));
        }
    }

    internal static class WriteTime
    {
        private static IEnumerable<KeyValuePair<long, Tick>> Counted(
            IEnumerable<KeyValuePair<long, Tick>> flow, List<Counter> counters)
        {
            foreach (KeyValuePair<long, Tick> record in flow)
            {
                yield return record;

                lock (counters)
                {
                    foreach (Counter counter in counters)
                        counter.Add();
                }
            }
        }

        private struct Cost
        {
            internal double Elapsed;
            internal double Cores;
        }

        private static Cost Measure(
            Database database, string directory, int records, int flows, int seed)
        {
            if (Directory.Exists(directory))
                Directory.Delete(directory, true);
            Directory.CreateDirectory(directory);
            database.DataDirectory = directory;
            GC.Collect();
            GC.WaitForPendingFinalizers();

            Stopwatch clock = new Stopwatch();
            List<Counter> counters = new List<Counter>();
            for (int i = 0; i < 6; i++)
                counters.Add(new Counter(clock, Math.Max(1, records / 100)));

            TimeSpan used = Process.GetCurrentProcess().TotalProcessorTime;
            clock.Start();
            database.Open();
            database.DeleteTable("Table1");
            ITable<long, Tick> table = database.OpenOrCreateTable("Table1");
            Task[] tasks = new Task[flows];
            for (int f = 0; f < flows; f++)
            {
                var flow = Counted(Flow.Make(seed + f, records / flows, 1.0), counters);
                tasks[f] = Task.Factory.StartNew(
                    () => table.Write(flow), TaskCreationOptions.LongRunning);
            }
            Task.WaitAll(tasks);
            long size = database.Size;
            clock.Stop();
            used = Process.GetCurrentProcess().TotalProcessorTime - used;

            database.Close();
            if (size == 0 && !(database is NullDatabase))
                throw new Exception("nothing was written");

            return new Cost
            {
                Elapsed = clock.Elapsed.TotalMilliseconds, Cores = used.TotalMilliseconds
            };
        }

        private static double Median(List<Cost> costs, Func<Cost, double> of)
        {
            return costs.Select(of).OrderBy(t => t).ElementAt(costs.Count / 2);
        }

        private static void Print(string what, List<Cost> without, List<Cost> with, Func<Cost, double> of)
        {
            double a = Median(without, of), b = Median(with, of);
            Console.WriteLine("median {0}: null {1:f0} ms, StrideDB {2:f0} ms, {3:+0.0;-0.0} %; least: " +
                              "null {4:f0} ms, StrideDB {5:f0} ms", what, a, b, 100 * (b / a - 1),
                              without.Min(of), with.Min(of));
        }

        private static int Main(string[] args)
        {
            if (args.Length < 4)
            {
                Console.Error.WriteLine(
                    "usage: WriteTime.exe DIRECTORY RECORDS FLOWS ROUNDS [DURABILITY]");
                return 2;
            }
            string directory = args[0];
            int records = int.Parse(args[1]);
            int flows = int.Parse(args[2]);
            int rounds = int.Parse(args[3]);
            StrideDBDatabase stride = new StrideDBDatabase();
            stride.Durability = args.Length > 4 ? int.Parse(args[4]) : 0;

            List<Cost> without = new List<Cost>(), with = new List<Cost>();
            for (int round = 0; round < rounds; round++)
            {
                without.Add(Measure(new NullDatabase(), directory, records, flows, 10 * round));
                with.Add(Measure(stride, directory, records, flows, 10 * round));
                Console.WriteLine("round {0}: null {1:f0} ms, StrideDB {2:f0} ms", round + 1,
                                  without[round].Elapsed, with[round].Elapsed);
            }
            Console.WriteLine("{0} records, {1} flows", records, flows);
            Print("elapsed", without, with, c => c.Elapsed);
            Print("all cores", without, with, c => c.Cores);
            Directory.Delete(directory, true);

            return 0;
        }
    }
}

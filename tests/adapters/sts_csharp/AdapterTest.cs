// The adapter under mono, against a dictionary: flows on threads of their own, ordered reads, ranges,
// the indexer, deletes, tables, reopening, and errors. Prints one line for each part; ends with 1 at
// the first answer that is wrong.
//
//   AdapterTest.exe DIRECTORY [FLOWS RECORDS]
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Databases;
using STS.General.Generators;

namespace StrideDB.Tests
{
    internal static class AdapterTest
    {
        private static StrideDBDatabase database;
        private static ITable<long, Tick> table;
        private static readonly Dictionary<long, Tick> expected = new Dictionary<long, Tick>();
        private static long[] sorted;

        private static void Check(bool right, string what)
        {
            if (!right)
                throw new Exception("wrong: " + what);
        }

        private static bool Same(Tick a, Tick b)
        {
            return a.Symbol == b.Symbol && a.Timestamp == b.Timestamp && a.Bid == b.Bid &&
                a.Ask == b.Ask && a.BidSize == b.BidSize && a.AskSize == b.AskSize &&
                a.Provider == b.Provider;
        }

        private static TException Throws<TException>(Action action, string what)
            where TException : Exception
        {
            try
            {
                action();
            }
            catch (TException exception)
            {
                return exception;
            }
            throw new Exception("nothing thrown: " + what);
        }

        // The records `from` to `to` of the dictionary, in order.
        private static void CheckRange(
            IEnumerable<KeyValuePair<long, Tick>> read, long from, long to, string what)
        {
            int next = Array.BinarySearch(sorted, from);
            if (next < 0)
                next = ~next;
            foreach (KeyValuePair<long, Tick> record in read)
            {
                Check(next < sorted.Length && sorted[next] <= to, what + ": too many records");
                Check(record.Key == sorted[next], what + ": key " + record.Key);
                Check(Same(record.Value, expected[record.Key]), what + ": record " + record.Key);
                next++;
            }
            Check(next == sorted.Length || sorted[next] > to, what + ": too few records");
        }

        private static void CheckAll(string what)
        {
            sorted = expected.Keys.ToArray();
            Array.Sort(sorted);
            CheckRange(table.Read(), long.MinValue, long.MaxValue, what);
        }

        // Up to four flows with keys of their own: every second one's are negative. Within a flow some
        // keys come twice.
        private static IEnumerable<KeyValuePair<long, Tick>> OwnFlow(int flow, int records)
        {
            int n = 0;
            long again = 0;
            foreach (KeyValuePair<long, Tick> record in Flow.Make(100 + flow, records, 0.5))
            {
                long key = (record.Key & ((1L << 61) - 1)) | (long)(flow / 2) << 61;
                if (flow % 2 == 1)
                    key = ~key;
                if (n++ % 1000 == 0)
                    again = key;
                yield return new KeyValuePair<long, Tick>(n % 1000 == 700 ? again : key, record.Value);
            }
        }

        private static void Write(int flows, int records)
        {
            Task[] tasks = new Task[flows];
            for (int f = 0; f < flows; f++)
            {
                int flow = f;
                tasks[f] = Task.Factory.StartNew(
                    () => table.Write(OwnFlow(flow, records)), TaskCreationOptions.LongRunning);
            }
            for (int f = 0; f < flows; f++)
            {
                foreach (KeyValuePair<long, Tick> record in OwnFlow(f, records))
                    expected[record.Key] = record.Value;
            }
            Task.WaitAll(tasks);
        }

        private static void Read()
        {
            CheckAll("read");
            CheckRange(table, long.MinValue, long.MaxValue, "enumeration");
            Check(sorted[0] < 0 && sorted[sorted.Length - 1] > 0, "both signs are tried");
            Check(table.Read().Count() == sorted.Length, "count");
        }

        private static void ReadRanges()
        {
            int n = sorted.Length;
            long low = sorted[n / 4], high = sorted[3 * n / 4];
            CheckRange(table.Read(low, high), low, high, "range");
            CheckRange(table.Read(low - 1, high + 1), low - 1, high + 1, "range around");
            Check(table.Read(low, low).Single().Key == low, "range of one");
            Check(!table.Read(high, low).Any(), "range the wrong way round");
            Check(table.Read(-1000, 1000).All(r => r.Key >= -1000 && r.Key <= 1000), "range over 0");
            Check(table.Read(sorted[n - 1], long.MaxValue).Count() == 1, "range to the end");
            Check(table.Read(long.MinValue, sorted[0]).Count() == 1, "range from the start");
            Check(table.Read().Take(3).Select(r => r.Key).SequenceEqual(sorted.Take(3)), "a part");
        }

        private static void Indexer()
        {
            for (int i = 0; i < sorted.Length; i += sorted.Length / 100)
                Check(Same(table[sorted[i]], expected[sorted[i]]), "indexer");

            long[] keys = { long.MinValue, -1, 0, 1, long.MaxValue, sorted[5] };
            DateTime time = new DateTime(DateTime.MaxValue.Ticks);
            string[] strings = { "", "a", "12345678", "123456789", "€ and ü\0", new string('x', 100000) };
            for (int i = 0; i < keys.Length; i++)
            {
                string other = strings[strings.Length - 1 - i];
                Tick tick = new Tick(strings[i], time, double.MinValue, double.NaN, -1,
                                     int.MaxValue, other);
                table[keys[i]] = tick;
                Tick found = table[keys[i]];
                Check(found.Symbol == strings[i] && found.Provider == other, "any string");
                Check(found.Timestamp == time && found.BidSize == -1, "any number");
                Check(found.Bid == double.MinValue && double.IsNaN(found.Ask), "any price");
                found.Ask = 1;
                table[keys[i]] = found;
                expected[keys[i]] = found;
            }
            CheckAll("read after the indexer");
            Check(!expected.ContainsKey(42), "no such key");
            Throws<KeyNotFoundException>(() => Check(table[42] == null, "42"), "a missing key");
            Throws<NullReferenceException>(() => table[42] = null, "no record");
            Throws<NullReferenceException>(() => table[42] = new Tick(), "no strings");
            Tick half = new Tick("a\ud800", time, 1, 1, 1, 1, "b");
            Throws<EncoderFallbackException>(() => table[42] = half, "half a character");
            Throws<KeyNotFoundException>(() => Check(table[42] == null, "42"), "a failed write");
        }

        private static IEnumerable<KeyValuePair<long, Tick>> Broken()
        {
            foreach (KeyValuePair<long, Tick> record in Flow.Make(7, 100000, 1))
                yield return record;
            throw new TimeoutException();
        }

        private static IEnumerable<KeyValuePair<long, Tick>> Unfit()
        {
            foreach (KeyValuePair<long, Tick> record in Flow.Make(8, 100000, 1))
            {
                yield return new KeyValuePair<long, Tick>(
                    record.Key, record.Value.BidSize < 9990 ? record.Value : null);
            }
        }

        private static void BrokenFlows()
        {
            Throws<TimeoutException>(() => table.Write(Broken()), "the flow's exception");
            Throws<NullReferenceException>(() => table.Write(Unfit()), "a record that is null");
            table.Write(new KeyValuePair<long, Tick>[0]);
            CheckAll("read after flows that broke");
        }

        private static void Delete()
        {
            long[] gone = { sorted[0], sorted[sorted.Length / 2], sorted[sorted.Length - 1], 42 };
            foreach (long key in gone)
            {
                table.Delete(key);
                expected.Remove(key);
            }
            CheckAll("read after Delete(key)");

            int n = sorted.Length;
            long low = sorted[n / 3], high = sorted[n / 2];
            table.Delete(low, high);
            foreach (long key in sorted.Where(key => key >= low && key <= high))
                expected.Remove(key);
            table.Delete(5, 4);
            CheckAll("read after Delete(from, to)");
            Check(!table.Read(low, high).Any(), "the range is empty");

            long last = sorted[sorted.Length - 2];
            table.Delete(last, long.MaxValue);
            foreach (long key in sorted.Where(key => key >= last))
                expected.Remove(key);
            CheckAll("read after Delete(from, the last)");
        }

        private static void Tables()
        {
            Check(table.Name == "Table1" && table.Database == database, "name and database");
            database.DeleteTable("not there");
            Throws<ArgumentNullException>(() => database.OpenOrCreateTable(null), "no name");
            Throws<ArgumentException>(() => database.OpenOrCreateTable("Table1\0x"), "a zero byte");
            Throws<ArgumentException>(() => database.DeleteTable("Table1\0x"), "a zero byte");
            Throws<StrideDBException>(() => database.OpenOrCreateTable(""), "an empty name");
            ITable<long, Tick> other = database.OpenOrCreateTable("other");
            other[1] = expected.First().Value;
            Check(other.Count() == 1, "another table");
            database.DeleteTable("other");
            Throws<StrideDBException>(() => other.Count(), "a deleted table");
            other = database.OpenOrCreateTable("other");
            Check(!other.Any(), "the table is new");
            other.Delete(long.MinValue, long.MaxValue);
            other.Close();
            Throws<ObjectDisposedException>(() => other.Count(), "a closed table");
        }

        private static void Reopen()
        {
            Check(database.Size > 40 * expected.Count, "size: " + database.Size);
            table.Close();
            database.Close();
            database.Close();
            Check(database.Size > 40 * expected.Count, "size while closed");
            Throws<InvalidOperationException>(() => database.DeleteTable("Table1"), "closed");

            database.Open();
            table = database.OpenOrCreateTable("Table1");
            CheckAll("read after reopening");
            // As the original's full test leaves it: open.
            database.Open();
            table = database.OpenOrCreateTable("Table1");
            CheckAll("read after opening again");
        }

        // A table of a database that was closed is not one of what has been opened since.
        private static void StaleTable()
        {
            string first = database.DataDirectory;
            string second = System.IO.Path.Combine(first, "second");
            System.IO.Directory.CreateDirectory(second);
            Tick tick = new Tick("a", new DateTime(1), 1, 2, 3, 4, "b");
            StrideDBDatabase moving = new StrideDBDatabase { DataDirectory = second };
            moving.Open();
            ITable<long, Tick> stale = moving.OpenOrCreateTable("stale");
            stale[1] = tick;
            IEnumerable<KeyValuePair<long, Tick>> unread = stale.Read();
            IEnumerator<KeyValuePair<long, Tick>> read = stale.Read().GetEnumerator();
            Check(read.MoveNext(), "a reader that has begun");
            moving.Close();
            for (int open = 0; open < 2; open++)
            {
                Throws<InvalidOperationException>(() => stale.Write(Flow.Make(1, 9, 1)), "Write");
                Throws<InvalidOperationException>(() => stale[2] = tick, "the indexer");
                Throws<InvalidOperationException>(() => Check(stale[1] == null, "1"), "the getter");
                Throws<InvalidOperationException>(() => stale.Delete(1), "Delete");
                Throws<InvalidOperationException>(() => stale.Delete(1, 2), "Delete a range");
                Throws<InvalidOperationException>(() => unread.Count(), "Read");
                if (open == 1)
                    break;
                moving.DataDirectory = System.IO.Path.Combine(second, "another");
                System.IO.Directory.CreateDirectory(moving.DataDirectory);
                moving.Open();
                moving.OpenOrCreateTable("other")[1] = tick;
            }
            Check(!read.MoveNext(), "the reader goes on to its end");
            Check(moving.OpenOrCreateTable("other").Count() == 1, "the other table as it was");
            stale.Close();
            moving.Close();
            System.IO.Directory.Delete(second, true);
        }

        // Threads that write and read while the database is closed and opened: they throw, or do what
        // they should.
        private static void ClosedMeanwhile()
        {
            string directory = System.IO.Path.Combine(database.DataDirectory, "third");
            System.IO.Directory.CreateDirectory(directory);
            StrideDBDatabase shared = new StrideDBDatabase { DataDirectory = directory, Durability = 2 };
            shared.Open();
            bool ended = false;
            int done = 0;
            Task[] tasks = new Task[3];
            for (int i = 0; i < tasks.Length; i++)
            {
                int seed = i;
                tasks[i] = Task.Factory.StartNew(() =>
                {
                    while (!System.Threading.Volatile.Read(ref ended))
                    {
                        try
                        {
                            ITable<long, Tick> mine = shared.OpenOrCreateTable("shared");
                            mine.Write(Flow.Make(seed, 5000, 1));
                            long last = long.MinValue;
                            foreach (KeyValuePair<long, Tick> record in mine)
                            {
                                Check(record.Key > last, "order while closing");
                                last = record.Key;
                            }
                            System.Threading.Interlocked.Increment(ref done);
                        }
                        catch (InvalidOperationException)
                        {
                        }
                        catch (StrideDBException exception)
                        {
                            // Closed between two calls: a handle that has been released, or closed.
                            Check(exception.Status == 3 || exception.Status == 13, exception.Message);
                        }
                    }
                }, TaskCreationOptions.LongRunning);
            }
            for (int i = 0; i < 30; i++)
            {
                System.Threading.Thread.Sleep(20);
                shared.Close();
                shared.Open();
            }
            System.Threading.SpinWait.SpinUntil(
                () => System.Threading.Volatile.Read(ref done) > 0, 60000);
            System.Threading.Volatile.Write(ref ended, true);
            Task.WaitAll(tasks);
            Check(done > 0, "some of it was done");
            shared.Close();
            System.IO.Directory.Delete(directory, true);
        }

        // What opening a database says that another process has.
        private static StrideDBException Locked()
        {
            string directory = System.IO.Path.Combine(
                System.IO.Path.GetTempPath(), "stridedb-locked-" + Guid.NewGuid().ToString("N"));
            StrideDBDatabase other = new StrideDBDatabase { DataDirectory = directory };
            other.Open();
            other.Close();
            string file = System.IO.Directory.GetFiles(
                directory, "LOCK", System.IO.SearchOption.AllDirectories)[0];
            var start = new System.Diagnostics.ProcessStartInfo(
                "flock", "-F \"" + file + "\" sh -c \"echo held; exec sleep 60\"")
            {
                UseShellExecute = false,
                RedirectStandardOutput = true
            };
            using (var holder = System.Diagnostics.Process.Start(start))
            {
                Check(holder.StandardOutput.ReadLine() == "held", "flock");
                try
                {
                    return Throws<StrideDBException>(other.Open, "a locked database");
                }
                finally
                {
                    holder.Kill();
                    holder.WaitForExit();
                    System.IO.Directory.Delete(directory, true);
                }
            }
        }

        private static void Errors()
        {
            // In one process it is the same database.
            StrideDBDatabase second = new StrideDBDatabase { DataDirectory = database.DataDirectory };
            second.Open();
            second.Close();
            StrideDBException locked = Locked();
            Check(locked.Status == 9 && locked.Path.Contains("stridedb") && locked.Remedy != "" &&
                  locked.Message.Contains(locked.Remedy), "what it says: " + locked.Message);
            Console.WriteLine("  " + locked.Message);
            Check(database.Name == "StrideDB" && database.Category == @"NoSQL\Key-Value Store" &&
                  database.IndexingTechnology != "None" && database.Color.G == 128, "description");

            database.DeleteTable("Table1");
            database.Close();
        }

        private static int Main(string[] args)
        {
            int flows = args.Length > 1 ? int.Parse(args[1]) : 4;
            int records = args.Length > 2 ? int.Parse(args[2]) : 250000;
            try
            {
                database = new StrideDBDatabase { DataDirectory = args[0] };
                database.Open();
                database.DeleteTable("Table1");
                table = database.OpenOrCreateTable("Table1");
                Write(flows, records);
                foreach (Action part in new Action[] {
                    Read, ReadRanges, Indexer, BrokenFlows, Delete, Tables, Reopen, StaleTable, ClosedMeanwhile, Errors })
                {
                    part();
                    Console.WriteLine("{0}: ok, {1} records", part.Method.Name, expected.Count);
                }
            }
            catch (Exception exception)
            {
                Console.Error.WriteLine(exception);
                return 1;
            }

            return 0;
        }
    }
}

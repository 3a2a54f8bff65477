// A program that is killed (SIGKILL) while two of its threads write: each flow is there whole or not at
// all, in the order in which its thread wrote them, and those that were written are there.
//
//   KillTest.exe DIRECTORY KILLS        starts itself again for each kill:
//   KillTest.exe DIRECTORY write BEGIN  writes from the flow BEGIN on; prints the number of each that is written
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection;
using System.Threading;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Databases;
using STS.General.Generators;

namespace StrideDB.Tests
{
    internal static class KillTest
    {
        private const int Threads = 2;
        private const int Records = 700;  // of a flow
        private const long Apart = 1L << 40;  // keys of two threads

        private static StrideDBDatabase Open(string directory)
        {
            // What was written survives the end of the process.
            StrideDBDatabase database = new StrideDBDatabase { DataDirectory = directory, Durability = 1 };
            database.Open();
            return database;
        }

        private static Tick Record(long key)
        {
            return new Tick("S" + key % 34, new DateTime(2013, 11, 12).AddSeconds(key % 100000), key, key + 0.5,
                (int)(key % 1000), (int)(key % 777), "P" + key % 11);
        }

        private static IEnumerable<KeyValuePair<long, Tick>> Flow(int thread, long flow)
        {
            for (int i = 0; i < Records; i++)
            {
                long key = thread * Apart + flow * Records + i;
                yield return new KeyValuePair<long, Tick>(key, Record(key));
            }
        }

        private static int Write(string directory, string[] begins)
        {
            ITable<long, Tick> table = Open(directory).OpenOrCreateTable("Table1");
            for (int thread = 0; thread < Threads; thread++)
            {
                int number = thread;
                long begin = long.Parse(begins[thread]);
                new Thread(() =>
                {
                    for (long flow = begin; ; flow++)
                    {
                        table.Write(Flow(number, flow));
                        lock (table)
                        {
                            Console.WriteLine(number + " " + flow);
                            Console.Out.Flush();
                        }
                    }
                }).Start();
            }
            Thread.Sleep(Timeout.Infinite);
            return 0;
        }

        // How many flows of each thread are there; all of them whole.
        private static long[] Check(string directory)
        {
            StrideDBDatabase database = Open(directory);
            ITable<long, Tick> table = database.OpenOrCreateTable("Table1");
            long[] rows = new long[Threads];
            foreach (KeyValuePair<long, Tick> record in table.Read())
            {
                long thread = record.Key / Apart;
                if (record.Key % Apart != rows[thread]++)
                    throw new Exception("key " + record.Key + " comes behind a gap");
                if (record.Value.Symbol != "S" + record.Key % 34 || record.Value.Ask != record.Key + 0.5)
                    throw new Exception("key " + record.Key + " has another record");
            }
            for (int thread = 0; thread < Threads; thread++)
            {
                if (rows[thread] % Records != 0)
                    throw new Exception("thread " + thread + " has a part of a flow: " + rows[thread] + " records");
                rows[thread] /= Records;
            }
            database.Close();
            return rows;
        }

        private static long[] WriteAndKill(string directory, long[] begins, int milliseconds)
        {
            string program = Assembly.GetExecutingAssembly().Location;
            ProcessStartInfo start = new ProcessStartInfo("mono",
                "\"" + program + "\" \"" + directory + "\" write " + string.Join(" ", begins));
            start.RedirectStandardOutput = true;
            start.UseShellExecute = false;
            long[] written = (long[])begins.Clone();
            bool began = false;
            using (Process writer = Process.Start(start))
            {
                for (string line; (line = writer.StandardOutput.ReadLine()) != null; )
                {
                    string[] words = line.Split(' ');
                    written[int.Parse(words[0])] = long.Parse(words[1]) + 1;
                    if (!began)
                        new Thread(() => { Thread.Sleep(milliseconds); writer.Kill(); }).Start();
                    began = true;
                }
                writer.WaitForExit();
            }
            if (!began)
                throw new Exception("the program has written nothing");
            return written;
        }

        private static int Main(string[] args)
        {
            if (args.Length > 2)
                return Write(args[0], new string[] { args[2], args[3] });
            int seed = Environment.TickCount, kills = int.Parse(args[1]);
            Console.WriteLine("seed " + seed);
            Random random = new Random(seed);
            long[] there = new long[Threads];
            for (int i = 0; i < kills; i++)
            {
                long[] written = WriteAndKill(args[0], there, random.Next(150));
                there = Check(args[0]);
                for (int thread = 0; thread < Threads; thread++)
                    if (there[thread] < written[thread] || there[thread] > written[thread] + 1)
                        throw new Exception("thread " + thread + " has written " + written[thread] + " flows, and there are " +
                            there[thread]);
            }
            Console.WriteLine(kills + " kills, " + string.Join(" and ", there) + " flows: none is lost or there in part");
            return 0;
        }
    }
}

// Runs the original's full write and read test without its windows. docs/sts.md says how to build it.
//
//   DatabaseBenchmark.exe [DIRECTORY [FLOWS RECORDS [RANDOMNESS [DATABASE]]]]
//
// Defaults: "data" in the current folder, 1 flow of 1000000 records, randomness 1, StrideDB. RECORDS is
// each flow's; the least is 100. DATABASE is the name of a class, without its "Database" at the end.
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Threading;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Core.Reporting;
using DatabaseBenchmark.Core.Tests;
using DatabaseBenchmark.Core.Utils;

namespace StrideDB.Program
{
    internal static class Program
    {
        private static string Argument(string[] args, int at, string otherwise)
        {
            return args.Length > at ? args[at] : otherwise;
        }

        private static Database Find(string name)
        {
            Type[] types = ReflectionUtils.GetDatabaseTypes();
            Type type = types.FirstOrDefault(t => t.Name == name + "Database");
            if (type == null)
            {
                throw new ArgumentException("there is no database " + name + "; there are " +
                    string.Join(", ", types.Select(t => t.Name.Replace("Database", ""))));
            }

            return ReflectionUtils.CreateDatabaseInstance(type);
        }

        private static void Print(PerformanceWatch watch, long records)
        {
            double seconds = watch.GetElapsedTime().TotalSeconds;
            Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
                "{0,-20} {1,12:N0} records {2,9:N3} s {3,12:N0} records/s",
                watch.Name, records, seconds, records / seconds));
        }

        private static int Main(string[] args)
        {
            try
            {
                string directory = Argument(args, 0, "data");
                int flows = int.Parse(Argument(args, 1, "1"));
                long records = long.Parse(Argument(args, 2, "1000000"));
                float randomness = float.Parse(
                    Argument(args, 3, "1"), CultureInfo.InvariantCulture);
                Database database = Find(Argument(args, 4, "StrideDB"));
                if (flows < 1 || records < 100)
                    throw new ArgumentException("FLOWS must be 1 at least, RECORDS 100");
                Directory.CreateDirectory(directory);
                database.DataDirectory = directory;

                FullWriteReadTest test = new FullWriteReadTest(
                    database, flows, records, randomness);
                new Benchmark(database).ExecuteTests(new CancellationTokenSource().Token, test);
                // A test that fails says so to its log and returns.
                if (log4net.LogManager.Errors > 0)
                    return 1;

                Print(test.Reports[0], flows * records);
                Print(test.Reports[1], test.RecordsRead);
                Print(test.Reports[2], test.RecordsRead);
                Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
                    "{0,-20} {1,12:N1} MB", "Size", test.DatabaseSize / 1e6));
                test.Finish();

                return 0;
            }
            catch (Exception exception)
            {
                Console.Error.WriteLine(exception.Message);
                return 1;
            }
        }
    }
}

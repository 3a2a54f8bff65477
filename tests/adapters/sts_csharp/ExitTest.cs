// The end of a program whose last work was a commit: mono unloads the library while threads of it may
// still be running.
//
//   ExitTest.exe DIRECTORY
using System;
using System.Linq;
using DatabaseBenchmark.Core;
using DatabaseBenchmark.Databases;
using STS.General.Generators;

namespace StrideDB.Tests
{
    internal static class ExitTest
    {
        private static int Main(string[] args)
        {
            StrideDBDatabase database = new StrideDBDatabase { DataDirectory = args[0], Durability = 2 };
            database.Open();
            database.DeleteTable("Table1");
            ITable<long, Tick> table = database.OpenOrCreateTable("Table1");
            table.Write(Flow.Make(1, 200000, 1.0));
            long size = database.Size;
            database.Close();

            return size > 40 * 200000 ? 0 : 1;
        }
    }
}

// What the adapter sees of the original program: the public declarations of STSSoft/DatabaseBenchmark
// (DatabaseBenchmark.Core) and STSSoft/STS.General, written anew with the same names and signatures
// and nothing behind them.
using System;
using System.Collections.Generic;
using System.Drawing;
using System.IO;
using STS.General.Generators;

namespace STS.General.Generators
{
    public class Tick
    {
        public string Symbol { get; set; }
        public DateTime Timestamp { get; set; }
        public double Bid { get; set; }
        public double Ask { get; set; }
        public int BidSize { get; set; }
        public int AskSize { get; set; }
        public string Provider { get; set; }

        public Tick()
        {
        }

        public Tick(string symbol, DateTime time, double bid, double ask, int bidSize, int askSize,
                    string provider)
        {
            Symbol = symbol;
            Timestamp = time;
            Bid = bid;
            Ask = ask;
            BidSize = bidSize;
            AskSize = askSize;
            Provider = provider;
        }
    }
}

namespace DatabaseBenchmark.Core.Attributes
{
    public class DbParameterAttribute : Attribute
    {
    }
}

namespace DatabaseBenchmark.Core
{
    public interface ITable<TKey, TRecord> : IEnumerable<KeyValuePair<TKey, TRecord>>
    {
        string Name { get; }
        IDatabase Database { get; }

        void Write(IEnumerable<KeyValuePair<TKey, TRecord>> records);
        IEnumerable<KeyValuePair<TKey, TRecord>> Read(TKey from, TKey to);
        IEnumerable<KeyValuePair<TKey, TRecord>> Read();
        void Delete(TKey key);
        void Delete(TKey from, TKey to);
        TRecord this[TKey key] { get; set; }
        void Close();
    }

    public interface IDatabase
    {
        string Name { get; set; }
        string Category { get; set; }
        string IndexingTechnology { get; }
        string Description { get; set; }
        string Website { get; set; }
        Color Color { get; set; }
        string[] Requirements { get; set; }
        string CollectionName { get; set; }
        string DataDirectory { get; set; }
        string ConnectionString { get; set; }
        ITable<long, Tick>[] Tables { get; }

        void Open();
        ITable<long, Tick> OpenOrCreateTable(string name);
        void DeleteTable(string name);
        void Close();
        long Size { get; }
    }

    public abstract class Database : IDatabase
    {
        protected object SyncRoot { get; set; }

        public string Name { get; set; }
        public string Category { get; set; }
        public string Description { get; set; }
        public string Website { get; set; }
        public string[] Requirements { get; set; }
        public string CollectionName { get; set; }
        public string DataDirectory { get; set; }
        public string ConnectionString { get; set; }
        public Color Color { get; set; }
        public ITable<long, Tick>[] Tables { get; set; }

        public abstract void Open();
        public abstract ITable<long, Tick> OpenOrCreateTable(string name);
        public abstract void DeleteTable(string name);
        public abstract void Close();

        public virtual string IndexingTechnology
        {
            get { return "None"; }
        }

        public virtual long Size
        {
            get
            {
                long bytes = 0;
                string[] files = Directory.GetFiles(DataDirectory, "*", SearchOption.AllDirectories);
                foreach (string file in files)
                    bytes += new FileInfo(file).Length;

                return bytes;
            }
        }
    }
}

#if !HAVE_SYSTEM_DRAWING
// Debian's mono-runtime comes without System.Drawing.dll.
namespace System.Drawing
{
    public struct Color
    {
        public byte R { get; private set; }
        public byte G { get; private set; }
        public byte B { get; private set; }

        public static Color FromArgb(int red, int green, int blue)
        {
            return new Color { R = (byte)red, G = (byte)green, B = (byte)blue };
        }
    }
}
#endif

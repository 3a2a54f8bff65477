// The records that the original generates (docs/sts.md): its rules, in code of our own, with seeds.
using System;
using System.Collections.Generic;
using STS.General.Generators;

namespace StrideDB.Tests
{
    /// <summary>Keys: runs of consecutive numbers that start at random places.</summary>
    internal sealed class KeySource
    {
        private readonly Random high;
        private readonly Random low;
        private readonly Random coin;
        private readonly double randomness;
        private long last;

        internal KeySource(int seed, double randomness)
        {
            high = new Random(seed);
            low = new Random(seed + 1000);
            coin = new Random(seed + 2000);
            this.randomness = randomness;
            last = high.Next();
        }

        internal long Next()
        {
            if (coin.NextDouble() <= randomness)
                last = ((long)high.Next() << 32) + low.Next();
            else
                last++;

            return last;
        }
    }

    /// <summary>Records: a random walk of the prices of 34 symbols.</summary>
    internal sealed class TickSource
    {
        private static readonly string[] Names =
        {
            "USDCHF", "GBPUSD", "EURUSD", "USDJPY", "EURCHF", "AUDBGN", "AUDCHF", "AUDJPY", "BGNJPY",
            "BGNUSD", "CADBGN", "CADCHF", "CADUSD", "CHFBGN", "CHFJPY", "CHFUSD", "EURAUD", "EURCAD",
            "EURGBP", "EURJPY", "GBPAUD", "GBPBGN", "GBPCAD", "GBPCHF", "GBPJPY", "NZDUSD", "USDBGN",
            "USDCAD", "XAUUSD", "XAGUSD", "$DAX", "$FTSE", "$NASDAQ", "$SP500"
        };
        private static readonly string[] Providers =
        {
            "eSignal", "Gain", "NYSE", "TSE", "NASDAQ", "Euronext", "LSE", "SSE", "ASE", "SE", "NSEI"
        };

        private readonly Random random;
        private readonly double[] prices = new double[Names.Length];
        private DateTime time = new DateTime(2013, 11, 12, 13, 0, 0);

        internal TickSource(int seed)
        {
            random = new Random(seed);
            for (int i = 0; i < prices.Length; i++)
                prices[i] = 100 + i;
        }

        internal Tick Next()
        {
            int symbol = random.Next(Names.Length);
            int digits = symbol < 28 ? 4 : 2;
            double pip = symbol < 28 ? 0.0001 : 0.01;
            int direction = random.Next() % 2 == 0 ? 1 : -1;
            int pips = random.Next(0, 10);
            int spread = random.Next(2, 30);
            time = time.AddSeconds(random.Next(1, 30));
            double bid = Math.Round(prices[symbol] + direction * pips * pip, digits);
            double ask = Math.Round(bid + spread * pip, digits);
            prices[symbol] = bid;
            int bidSize = random.Next(0, 10000);
            int askSize = random.Next(0, 10000);

            return new Tick(Names[symbol], time, bid, ask, bidSize, askSize,
                            Providers[random.Next(Providers.Length)]);
        }
    }

    internal static class Flow
    {
        internal static IEnumerable<KeyValuePair<long, Tick>> Make(
            int seed, int records, double randomness)
        {
            KeySource keys = new KeySource(seed, randomness);
            TickSource ticks = new TickSource(seed + 3000);
            for (int i = 0; i < records; i++)
                yield return new KeyValuePair<long, Tick>(keys.Next(), ticks.Next());
        }
    }
}

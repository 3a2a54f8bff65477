// The bytes of a stored record: what BinaryWriter makes of its fields in this order, little-endian.
//
//   | Symbol     | Timestamp.Ticks | Bid    | Ask    | BidSize | AskSize | Provider   |
//   | len, chars | int64           | double | double | int32   | int32   | len, chars |
//
// A string's length is 7 bits a byte, the lowest first, with the high bit set on all but the last.
using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using STS.General.Generators;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// Records to bytes. The few strings that most records have are remembered as bytes: neither
    /// they nor the record make garbage. One thread at a time.
    /// </summary>
    internal sealed unsafe class StrideDBTickEncoder
    {
        // A string that is remembered takes at most so many bytes, its length included.
        private const int ShortBytes = 16;
        private const int SlotBits = 9;

        internal const int FixedBytes = 3 * 8 + 2 * 4;

        private struct Slot
        {
            internal string Text;
            internal ulong Low;
            internal ulong High;
            internal int Bytes;
        }

        private readonly Slot[] slots = new Slot[1 << SlotBits];

        /// <summary>
        /// Writes a record at `to` and returns its end, or null where there is not enough room
        /// before `end`: Room(tick) bytes always are.
        /// </summary>
        internal byte* Write(Tick tick, byte* to, byte* end)
        {
            if (end - to < 2 * ShortBytes + FixedBytes)
                return null;

            byte* at = WriteString(tick.Symbol, to, end);
            if (at == null || end - at < FixedBytes)
                return null;

            *(long*)at = tick.Timestamp.Ticks;
            *(double*)(at + 8) = tick.Bid;
            *(double*)(at + 16) = tick.Ask;
            *(int*)(at + 24) = tick.BidSize;
            *(int*)(at + 28) = tick.AskSize;

            return WriteString(tick.Provider, at + FixedBytes, end);
        }

        internal static int Room(Tick tick)
        {
            return 2 * ShortBytes + FixedBytes + 2 * 5 +
                Encoding.UTF8.GetMaxByteCount(tick.Symbol.Length) +
                Encoding.UTF8.GetMaxByteCount(tick.Provider.Length);
        }

        private byte* WriteString(string text, byte* to, byte* end)
        {
            int length = text.Length;
            if (length == 0 || end - to < ShortBytes)
                return WriteAnyString(text, to, end);

            ulong first, last;
            fixed (char* chars = text)
            {
                // A string has a zero behind its end.
                first = length < 4 ? *(uint*)chars : *(ulong*)chars;
                last = length < 4 ? chars[length - 1] : *(ulong*)(chars + length - 4);
            }
            int slot = (int)((first + 3 * last) * 0x9E3779B97F4A7C15UL >> (64 - SlotBits));
            if ((object)slots[slot].Text != (object)text && !Remember(text, ref slots[slot]))
                return WriteAnyString(text, to, end);

            *(ulong*)to = slots[slot].Low;
            *(ulong*)(to + 8) = slots[slot].High;

            return to + slots[slot].Bytes;
        }

        private static bool Remember(string text, ref Slot slot)
        {
            if (StrideDBNative.Utf8.GetByteCount(text) >= ShortBytes)
                return false;

            byte* bytes = stackalloc byte[ShortBytes];
            slot.Bytes = (int)(WriteAnyString(text, bytes, bytes + ShortBytes) - bytes);
            slot.Low = *(ulong*)bytes;
            slot.High = *(ulong*)(bytes + 8);
            slot.Text = text;

            return true;
        }

        private static byte* WriteAnyString(string text, byte* to, byte* end)
        {
            byte[] bytes = StrideDBNative.Utf8.GetBytes(text);
            int rest = bytes.Length;
            for (; rest >= 0x80; rest >>= 7)
            {
                if (to == end)
                    return null;
                *to++ = (byte)(rest | 0x80);
            }
            if (end - to < 1 + bytes.Length)
                return null;
            *to++ = (byte)rest;

            Marshal.Copy(bytes, 0, (IntPtr)to, bytes.Length);

            return to + bytes.Length;
        }
    }

    /// <summary>
    /// Bytes to records. Equal short strings become one string. One thread at a time.
    /// </summary>
    internal sealed unsafe class StrideDBTickDecoder
    {
        // A string that is remembered has at most so many bytes, which one number holds.
        private const int ShortBytes = 8;
        private const int SlotBits = 9;
        private const int MinBytes = 1 + StrideDBTickEncoder.FixedBytes + 1;

        private struct Slot
        {
            internal ulong Word;
            internal string Text;
        }

        private readonly Slot[] slots = new Slot[1 << SlotBits];

        /// <summary>The record that is stored in all of `from` up to `end`.</summary>
        internal Tick Read(byte* from, byte* end)
        {
            if (end - from < MinBytes)
                throw NoTick();

            byte* at = from;
            int length = ReadLength(ref at, end);
            if (length > end - at - StrideDBTickEncoder.FixedBytes - 1)
                throw NoTick();

            // The fixed fields follow, so that 8 bytes are there whatever the length is.
            string symbol = length <= ShortBytes
                ? Short(*(ulong*)at, length) : Any(at, length);
            at += length;

            byte* fields = at;
            at += StrideDBTickEncoder.FixedBytes;
            length = ReadLength(ref at, end);
            if (length != end - at)
                throw NoTick();

            // And here they come before.
            string provider = length <= ShortBytes && length > 0
                ? Short(*(ulong*)(end - 8) >> (64 - 8 * length), length) : Any(at, length);

            return new Tick(
                symbol, new DateTime(*(long*)fields), *(double*)(fields + 8),
                *(double*)(fields + 16), *(int*)(fields + 24), *(int*)(fields + 28), provider);
        }

        // `word` begins with the bytes of the string.
        private string Short(ulong word, int length)
        {
            if (length < ShortBytes)
                word &= (1UL << (8 * length)) - 1;

            int slot = (int)((word * 0x9E3779B97F4A7C15UL) >> (64 - SlotBits));
            string text = slots[slot].Text;
            // A string that ends with a zero byte has the number of a shorter one.
            if (text != null && slots[slot].Word == word && text.Length == length)
                return text;

            text = Any((byte*)&word, length);
            slots[slot].Word = word;
            slots[slot].Text = text;

            return text;
        }

        private static string Any(byte* from, int length)
        {
            byte[] bytes = new byte[length];
            Marshal.Copy((IntPtr)from, bytes, 0, length);

            return Encoding.UTF8.GetString(bytes);
        }

        private static int ReadLength(ref byte* at, byte* end)
        {
            int length = 0;
            for (int shift = 0; shift < 35; shift += 7)
            {
                if (at == end)
                    break;

                byte read = *at++;
                length |= (read & 0x7F) << shift;
                if (read < 0x80)
                {
                    if (length < 0)
                        break;
                    return length;
                }
            }
            throw NoTick();
        }

        private static Exception NoTick()
        {
            return new InvalidDataException(
                "a stored value is no record of this benchmark: delete the table, or use another");
        }
    }
}

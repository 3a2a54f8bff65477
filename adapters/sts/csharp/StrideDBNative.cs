// stridedb.h, as far as the adapter needs it, and its errors as exceptions.
using System;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace DatabaseBenchmark.Databases
{
    /// <summary>
    /// What a function of stridedb.h said when it failed. Message holds all of it, in one line.
    /// </summary>
    public class StrideDBException : Exception
    {
        /// <summary>One of the STRIDE_ numbers of stridedb.h.</summary>
        public int Status { get; private set; }

        /// <summary>The file or directory concerned, or an empty string.</summary>
        public string Path { get; private set; }

        /// <summary>What to do about it, or an empty string.</summary>
        public string Remedy { get; private set; }

        internal StrideDBException(int status, string text, string path, string remedy)
            : base(text)
        {
            Status = status;
            Path = path;
            Remedy = remedy;
        }
    }

    /// <summary>A handle that is released when nobody uses it any more.</summary>
    internal abstract class StrideDBHandle : SafeHandle
    {
        protected StrideDBHandle(IntPtr made)
            : base(IntPtr.Zero, true)
        {
            SetHandle(made);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }
    }

    internal sealed class StrideDBDatabaseHandle : StrideDBHandle
    {
        private readonly ManualResetEventSlim ended = new ManualResetEventSlim();

        /// <summary>Why it could not be closed well, or null.</summary>
        internal StrideDBException Failure { get; private set; }

        internal StrideDBDatabaseHandle(IntPtr made)
            : base(made)
        {
        }

        protected override bool ReleaseHandle()
        {
            int status = StrideDBNative.stride_close(handle);
            if (status != StrideDBNative.Ok)
                Failure = StrideDBNative.LastError(status);
            ended.Set();

            return status == StrideDBNative.Ok;
        }

        /// <summary>Closes it once the calls of other threads that use it have returned.</summary>
        internal void CloseAndWait()
        {
            Close();
            ended.Wait();
        }
    }

    internal sealed class StrideDBTableHandle : StrideDBHandle
    {
        internal StrideDBTableHandle(IntPtr made)
            : base(made)
        {
        }

        protected override bool ReleaseHandle()
        {
            return StrideDBNative.stride_table_release(handle) == StrideDBNative.Ok;
        }
    }

    internal sealed class StrideDBSnapshotHandle : StrideDBHandle
    {
        private StrideDBSnapshotHandle(IntPtr made)
            : base(made)
        {
        }

        internal static StrideDBSnapshotHandle Take(StrideDBDatabaseHandle database)
        {
            IntPtr made;
            StrideDBNative.Check(StrideDBNative.stride_snapshot_take(database, out made));

            return new StrideDBSnapshotHandle(made);
        }

        protected override bool ReleaseHandle()
        {
            return StrideDBNative.stride_snapshot_release(handle) == StrideDBNative.Ok;
        }
    }

    internal sealed class StrideDBScanHandle : StrideDBHandle
    {
        internal StrideDBScanHandle(IntPtr made)
            : base(made)
        {
        }

        protected override bool ReleaseHandle()
        {
            return StrideDBNative.stride_scan_release(handle) == StrideDBNative.Ok;
        }
    }

    internal static unsafe class StrideDBNative
    {
        // stridedb.dll, or libstridedb.so.
        private const string Library = "stridedb";

        internal const int Ok = 0;
        internal const int NotFound = 1;

        internal const int KeyBytes = 8;

        [StructLayout(LayoutKind.Sequential)]
        internal struct Column
        {
            internal void* Data;
            internal ulong* Offsets;
            internal ulong Size;
            internal uint Width;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Bytes
        {
            internal void* Data;
            internal ulong Size;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct ScanOptions
        {
            internal UIntPtr Size;
            internal Bytes From;
            internal Bytes To;
            internal Bytes Prefix;
            internal int FromExclusive;
            internal int ToInclusive;
            internal int Reverse;
            internal uint BatchRows;
        }

        [StructLayout(LayoutKind.Sequential)]
        private struct Error
        {
            internal int Status;
            internal byte* Message;
            internal byte* File;
            internal byte* Remedy;
            internal byte* Text;
            internal int HasOffset;
            internal ulong Offset;
        }

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        private static extern Error* stride_last_error();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_int64_to_keys(long* numbers, ulong n, void* keys);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_open(byte[] path, void* options, out IntPtr database);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_close(IntPtr database);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_size(StrideDBDatabaseHandle database, out ulong bytes);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_table_open_or_create(
            StrideDBDatabaseHandle database, byte[] name, uint keyWidth, out IntPtr table);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_table_release(IntPtr table);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_table_drop(StrideDBDatabaseHandle database, byte[] name);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_begin(
            StrideDBDatabaseHandle database, out IntPtr transaction);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_put_view(
            IntPtr transaction, StrideDBTableHandle table, ref Column keys, ref Column values);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_erase(
            IntPtr transaction, StrideDBTableHandle table, ref Column keys);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_erase_range(
            IntPtr transaction, StrideDBTableHandle table, Bytes* from, Bytes* to);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_commit(IntPtr transaction, int durability);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_abort(IntPtr transaction);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_snapshot_take(
            StrideDBDatabaseHandle database, out IntPtr snapshot);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_snapshot_release(IntPtr snapshot);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_get_one(
            StrideDBSnapshotHandle snapshot, StrideDBTableHandle table, void* key, ulong keyBytes,
            out Bytes value);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_scan_options_init(out ScanOptions options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_scan_open(
            StrideDBSnapshotHandle snapshot, StrideDBTableHandle table, ref ScanOptions options,
            out IntPtr scan);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_scan_next(
            StrideDBScanHandle scan, out Column keys, out Column values);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        internal static extern int stride_scan_release(IntPtr scan);

        /// <summary>Throws what the last call of this thread has to say, if it failed.</summary>
        internal static void Check(int status)
        {
            if (status != Ok)
                throw LastError(status);
        }

        internal static StrideDBException LastError(int status)
        {
            Error* error = stride_last_error();

            return new StrideDBException(
                status, FromUtf8(error->Text), FromUtf8(error->File), FromUtf8(error->Remedy));
        }

        /// <summary>
        /// A number as its key lies in memory: big-endian with the sign bit flipped.
        /// </summary>
        internal static ulong ToKey(long number)
        {
            return Swap((ulong)number ^ (1UL << 63));
        }

        internal static long FromKey(ulong key)
        {
            return (long)(Swap(key) ^ (1UL << 63));
        }

        private static ulong Swap(ulong n)
        {
            n = (n >> 8 & 0x00FF00FF00FF00FFUL) | (n & 0x00FF00FF00FF00FFUL) << 8;
            n = (n >> 16 & 0x0000FFFF0000FFFFUL) | (n & 0x0000FFFF0000FFFFUL) << 16;

            return n >> 32 | n << 32;
        }

        /// <summary>What has no UTF-8, as half a surrogate pair, throws.</summary>
        internal static readonly UTF8Encoding Utf8 = new UTF8Encoding(false, true);

        /// <summary>Of a name or path. A zero byte would cut it short, to another one.</summary>
        internal static byte[] ToUtf8(string text)
        {
            if (text == null)
                throw new ArgumentNullException("text");
            if (text.IndexOf('\0') >= 0)
                throw new ArgumentException("a name with a zero byte: " + text.Replace("\0", "\\0"));

            return Utf8.GetBytes(text + "\0");
        }

        private static string FromUtf8(byte* text)
        {
            int length = 0;
            while (text[length] != 0)
                length++;

            byte[] bytes = new byte[length];
            Marshal.Copy((IntPtr)text, bytes, 0, length);

            return Encoding.UTF8.GetString(bytes);
        }
    }
}

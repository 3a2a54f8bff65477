// What the original asks of log4net, which Debian has no package of: errors go to the standard error.
using System;

namespace log4net
{
    public interface ILog
    {
        void Info(object message);
        void Error(object message);
        void Error(object message, Exception exception);
    }

    public static class LogManager
    {
        private sealed class Log : ILog
        {
            public void Info(object message)
            {
            }

            public void Error(object message)
            {
                Errors++;
                Console.Error.WriteLine(message);
            }

            public void Error(object message, Exception exception)
            {
                Error(message + " " + exception);
            }
        }

        /// <summary>How many errors there were.</summary>
        public static int Errors { get; private set; }

        public static ILog GetLogger(string name)
        {
            return new Log();
        }
    }
}

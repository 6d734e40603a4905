package command

import (
	"io"
	"log"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/slipway-platform/slipway/internal/redact"
)

// setLogOutput sets the output of this process's logs, including klog, which upstream libraries
// use. It redacts every line. Call it before any other goroutine logs.
func setLogOutput(out io.Writer) {
	out = redact.Writer(out)
	log.SetOutput(out)
	// Without a logger, klog writes to stderr.
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out)))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
}

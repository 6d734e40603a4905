package command

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/slipway-platform/slipway/internal/redact"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// setLogOutput sets the output for this process's logs, including klog, which upstream libraries
// use. The output redacts each line and adds the component that logged it. It must be called before
// any other goroutine logs.
func setLogOutput(out io.Writer) {
	out = labelWriter{redact.Writer(out)}
	log.SetOutput(out)
	// Without a logger, klog writes to stderr.
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out)))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
}

// labelWriter adds the component attribute to lines that lack it. It can determine the component,
// because a logger writes each line in the goroutine that logs the line.
type labelWriter struct{ out io.Writer }

// Write implements io.Writer.
func (w labelWriter) Write(line []byte) (int, error) {
	name := component.Current()
	if name == "" || bytes.Contains(line, []byte(" component=")) {
		return w.out.Write(line)
	}
	if _, err := w.out.Write(fmt.Appendf(nil, "%s component=%q\n", bytes.TrimSuffix(line, []byte("\n")), name)); err != nil {
		return 0, err
	}
	return len(line), nil
}

package registry

import (
	"os"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestMain disables distribution's log, which contains each request.
func TestMain(m *testing.M) {
	logrus.SetLevel(logrus.PanicLevel)
	os.Exit(m.Run())
}

package registry

import (
	"os"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestMain silences distribution, which logs each request.
func TestMain(m *testing.M) {
	logrus.SetLevel(logrus.PanicLevel)
	os.Exit(m.Run())
}

package node

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/usermode"
)

func TestMain(m *testing.M) { usermode.Main(m) }

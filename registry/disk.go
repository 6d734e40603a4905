package registry

import (
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// checkSpace returns a refusal if the free space on a directory's disk is less than the reserve.
func checkSpace(dir string, reserve diskspace.Reserve) error {
	err := reserve.Check(dir)
	full := (*diskspace.Full)(nil)
	if errors.As(err, &full) {
		return &refusal{full: true, message: fmt.Sprintf("%s; %s (slipway.registry.reserve)", fullMessage, full)}
	}
	return err
}

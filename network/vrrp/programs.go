package vrrp

import (
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/internal/program"
)

// FindPrograms returns the paths of this machine's programs for sharing addresses.
func FindPrograms() (Programs, error) {
	var programs Programs
	var errs []error
	for name, path := range map[string]*string{
		"keepalived": &programs.Keepalived, "nft": &programs.Nft, "nc": &programs.Netcat,
	} {
		var ok bool
		if *path, ok = program.Find(name); !ok {
			errs = append(errs, fmt.Errorf("find program %q: it does not exist", name))
		}
	}
	return programs, errors.Join(errs...)
}

// FindImagePrograms returns the paths on this machine of the programs that the image for
// address-sharing pods must contain. These are keepalived, nft and, for scripts, bash if the
// machine has it.
func FindImagePrograms() ([]string, error) {
	var paths []string
	for _, name := range []string{"keepalived", "nft", "bash"} {
		path, ok := program.Find(name)
		if !ok && name != "bash" {
			return nil, fmt.Errorf("share addresses: this machine has no %s; run: apt-get install keepalived nftables", name)
		}
		if ok {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

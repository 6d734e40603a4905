package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// errNoDirectory is the error that is returned if no directory exists in which a mount can be
// tested.
var errNoDirectory = errors.New("it cannot be tested, because no parent of the data directory exists")

// try uses a feature in the same way as the host does later. It creates devices and tables in a
// temporary network namespace.
func try(ctx context.Context, feature Feature, dir string) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "preflight0"
	switch feature {
	case Overlay:
		return tryOverlay(dir)
	case Namespaces:
		return inNewNetwork(func() error { return nil })
	case Bridge:
		return inNewNetwork(func() error { return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}) })
	case Veth:
		return inNewNetwork(func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "preflight1"})
		})
	case NFTables:
		return inNewNetwork(func() error { return tryNFT(ctx) })
	}
	return fmt.Errorf("feature %q is unknown", feature)
}

// tryOverlay mounts an overlay file system, as used for image layers, and writes to it.
func tryOverlay(dir string) (err error) {
	work, err := os.MkdirTemp(dir, "preflight-")
	if err != nil {
		return fmt.Errorf("%w: %w", errNoDirectory, err)
	}
	defer os.RemoveAll(work)
	layers := map[string]string{}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		layers[name] = filepath.Join(work, name)
		if err := os.Mkdir(layers[name], 0o700); err != nil {
			return fmt.Errorf("%w: %w", errNoDirectory, err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", layers["lower"], layers["upper"], layers["work"])
	if err := unix.Mount("overlay", layers["merged"], "overlay", 0, options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(layers["merged"], unix.MNT_DETACH)) }()
	if err := os.WriteFile(filepath.Join(layers["merged"], "file"), nil, 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// inNewNetwork runs f on a thread in a new network namespace. The thread and the namespace are
// removed when f returns.
func inNewNetwork(f func() error) error {
	return thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", err)
		}
		return f()
	})
}

// tryNFT adds rules that are similar to the pod network's and the service proxy's rules.
func tryNFT(ctx context.Context) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(`table ip preflight {
		map backends { type inet_service : verdict; }
		chain out {
			type nat hook postrouting priority 100;
			fib daddr type local return
			numgen random mod 2 vmap { 0 : accept, 1 : accept }
			masquerade
		}
		chain in { type nat hook prerouting priority -100; tcp dport 1 dnat to 127.0.0.1:2; }
		chain between { type filter hook forward priority 0; ct state established accept; }
	}`)
	output, err := command.CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
		return fmt.Errorf("nft: %w: %s", err, first)
	}
	return nil
}

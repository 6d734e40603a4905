package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerbsRejectWrongArguments checks that an error contains the wrong argument and the remedy,
// and that the verb creates nothing.
func TestVerbsRejectWrongArguments(t *testing.T) {
	// The subtests share this directory, because their own temporary directories have names that
	// are too long for the path of a socket.
	dir := filepath.Join(t.TempDir(), "data")
	for args, want := range map[string]string{
		"token create --role admin":                           `--role "admin": use node or master`,
		"token create --ttl -1h":                              "--ttl -1h0m0s: use a duration such as 24h",
		"token create --uses 0":                               "--uses 0: use 1 or more",
		"token create --node one --uses 2":                    "--node is for one existing node",
		"token create --node one --role master":               "--node is for one existing node",
		"token create --node one --group infra":               "--node is for one existing node",
		"token revoke":                                        "requires at least 1 arg",
		"logs --level loud":                                   `unknown level "loud"; choose one of: info, warning, error`,
		"logs --grep (":                                       `parse regular expression "("`,
		"logs docker":                                         `unknown component "docker"; choose one of: `,
		"debug profile docker":                                `unknown component "docker"`,
		"debug profile containerd":                            "only control-plane and node have profiles",
		"debug profile apiserver --type cpu":                  "specify a file with -o",
		"master-restart scheduler2":                           "a master has no such component; use one of",
		"master stop kubelet":                                 `the component "kubelet" cannot be stopped`,
		"network trace a/b c/d 0":                             `port "0": must be a number from 1 to 65535`,
		"network trace a/b c/d 65536":                         `port "65536": must be a number from 1 to 65535`,
		"network trace 192.0.2.1 2001:db8::1":                 `address "192.0.2.1": must be IPv6, like the other end`,
		"network capture":                                     "specify a pod as NAMESPACE/POD",
		"network capture a/b":                                 "specify a file for the packets with --write",
		"network capture a/b --pod c/d --write -":             "specify pods either as arguments or with --pod",
		"network capture a/b --write - --count -1":            "--count and --duration must not be negative",
		"network capture a/b --write - --host web":            `--host "web": must be an IP address`,
		"network throughput measure web":                      `address "web": must be an IP address`,
		"network throughput measure 192.0.2.1 --rate 0":       "--duration and --rate must be positive",
		"network throughput measure 192.0.2.1 --duration 0s":  "--duration and --rate must be positive",
		"lb config --master a=b=c":                            "use NAME=HOST:PORT",
		"lb config --master a=192.0.2.1:0":                    "is not between 1 and 65535",
		"lb config --master a=192.0.2.1 --master a=192.0.2.2": `two masters have the name "a"`,
		"lb config --master 192.0.2.1 --listen 443":           `"443" is not HOST:PORT`,
		"metrics scrape-config":                               `required flag(s) "server" not set`,
		"htpasswd set":                                        "accepts 1 arg(s), received 0",
		"images publish app shop":                             "must be PROJECT/STREAM:TAG",
		"flexvolume check example.com/disk --fail-on always":  `parse --fail-on "always": must be wrong, risk or never`,
		"flexvolume check example.com/disk --size large":      `parse --size "large": must be a size such as 100Mi`,
		"flexvolume check example.com/disk --option key":      `parse --option "key": must be key=value`,
		"no-such-verb":                                        `unknown command "no-such-verb"`,
		"down --no-such-flag":                                 "unknown flag: --no-such-flag",
	} {
		t.Run(args, func(t *testing.T) {
			output, err := verbOutput(dir, strings.Fields(args)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %q; output %q", err, want, output)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the data directory exists: %v", err)
			}
		})
	}
}

package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
)

// etcdctlCommand returns the command that runs etcd's own client with this master's credentials and
// address.
func etcdctlCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "etcdctl COMMAND",
		Short: "Run etcd's client etcdctl with the credentials of this master",
		Long: "Run etcd's client etcdctl with the credentials and the address of this master, unless flags or variables such as\n" +
			"ETCDCTL_ENDPOINTS name others. The flags of etcdctl's API version 2 (-C, --peers, --ca-file, --cert-file, --key-file) and\n" +
			"`cluster-health` work, too. SLIPWAY_DATA_DIR names another data directory. If the program is called etcdctl, it runs this command.",
		Example:            "  slipway etcdctl member list -w table\n  slipway etcdctl endpoint health --cluster",
		GroupID:            "look",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			args, err := etcdctlArguments(args, os.Getenv("ETCDCTL_API"))
			if err != nil {
				return fmt.Errorf("etcdctl: %w", err)
			}
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			client, endpoint := h.EtcdMembers(), h.EtcdEndpoint()
			for _, flag := range []struct{ name, value string }{
				{"endpoints", endpoint}, {"cacert", client.CAFile}, {"cert", client.CertFile}, {"key", client.KeyFile},
			} {
				if !hasFlag(args, flag.name) && os.Getenv("ETCDCTL_"+strings.ToUpper(flag.name)) == "" {
					args = append([]string{"--" + flag.name + "=" + flag.value}, args...)
				}
			}
			// Unset the variable, because etcdctl warns about an ETCDCTL_ environment variable that
			// does not correspond to a flag.
			if err := os.Unsetenv("ETCDCTL_API"); err != nil {
				return fmt.Errorf("etcdctl: %w", err)
			}
			os.Args = append([]string{"etcdctl"}, args...)
			return ctlv3.Start()
		},
	}
}

// formerFlags maps flags of etcdctl's API version 2 to their replacements.
var formerFlags = map[string]string{
	"-C": "--endpoints", "--peers": "--endpoints", "--peer": "--endpoints", "--endpoint": "--endpoints",
	"--ca-file": "--cacert", "--cert-file": "--cert", "--key-file": "--key",
}

// formerCommands maps the removed commands of API version 2 to their remedies.
var formerCommands = map[string]string{
	"backup": "use `slipway etcd snapshot save`",
	"ls":     "etcd has no data of version 2; use `get --prefix --keys-only`",
	"mk":     "etcd has no data of version 2; use `put`",
	"set":    "etcd has no data of version 2; use `put`",
	"rm":     "etcd has no data of version 2; use `del`",
}

// etcdctlArguments converts arguments for API version 2 or 3 to arguments for the current etcdctl.
func etcdctlArguments(args []string, api string) ([]string, error) {
	if api != "" && api != "3" && api != "2" {
		return nil, fmt.Errorf("unknown API version ETCDCTL_API=%s; unset the variable", api)
	}
	var flags, words []string
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		current, former := formerFlags[name]
		if !former {
			words = append(words, args[i])
			continue
		}
		if !assigned {
			if i++; i == len(args) {
				return nil, fmt.Errorf("the flag %s needs a value", name)
			}
			value = args[i]
		}
		flags = append(flags, current+"="+value)
	}
	words, err := etcdctlWords(words)
	return append(flags, words...), err
}

// etcdctlWords converts a command of API version 2, with its arguments, to API version 3.
func etcdctlWords(words []string) ([]string, error) {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") { // version 3 allows leading flags
		return words, nil
	}
	if remedy, former := formerCommands[words[0]]; former {
		return nil, fmt.Errorf("the command %q belongs to API version 2: %s", words[0], remedy)
	}
	if words[0] == "cluster-health" {
		return append([]string{"endpoint", "health", "--cluster"}, words[1:]...), nil
	}
	if len(words) > 1 && words[0] == "snapshot" && words[1] == "restore" {
		return nil, errors.New("`etcdctl snapshot restore` is not supported; stop Slipway on this host, and use `slipway etcd snapshot restore`")
	}
	isMember := len(words) == 4 && words[0] == "member" && slices.Contains([]string{"add", "update"}, words[1])
	if isMember && strings.Contains(words[3], "://") {
		return []string{"member", words[1], words[2], "--peer-urls=" + words[3]}, nil
	}
	return words, nil
}

// hasFlag reports whether arguments contain a flag.
func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=") })
}

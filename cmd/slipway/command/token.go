package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/internal/nodegroup"
	"github.com/slipway-platform/slipway/pki/join"
)

// tokenCommand returns the command that manages join tokens for hosts.
func tokenCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "token", Short: "Manage the tokens with which other hosts join this cluster", GroupID: "host"}
	command.AddCommand(
		createTokenCommand(opts),
		&cobra.Command{
			Use: "list", Short: "List the tokens", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return listTokens(cmd, opts) },
		},
		&cobra.Command{
			Use: "revoke ID...", Short: "Revoke tokens; hosts that joined with them remain in the cluster", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				tokens, _, err := openTokens(opts)
				if err != nil {
					return err
				}
				var errs []error
				for _, id := range args {
					errs = append(errs, tokens.Revoke(cmd.Context(), id))
				}
				return errors.Join(errs...)
			},
		},
	)
	return command
}

func createTokenCommand(opts *options) *cobra.Command {
	info := hosts.TokenInfo{}
	var ttl time.Duration
	router := true
	command := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long: "Create a token and print it. The cluster stores only its hash, so the token cannot be printed again. It contains the hash of\n" +
			"the cluster's certificate authority, so that a host does not send the token to any other server.",
		Example: "  slipway token create\n" +
			"  slipway token create --uses 5 --ttl 1h --group infra\n" +
			"  slipway token create --role master --uses 2 --ttl 1h\n" +
			"  slipway token create --node node1.example.com --ttl 1h",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(join.Roles(), info.Role):
				return fmt.Errorf("--role %q: use %s", info.Role, strings.Join(join.Roles(), " or "))
			case ttl <= 0:
				return fmt.Errorf("--ttl %s: use a duration such as 24h", ttl)
			case info.Uses < 1:
				return fmt.Errorf("--uses %d: use 1 or more", info.Uses)
			case info.Node != "" && (info.Uses != 1 || info.Role != join.RoleNode || info.Group != ""):
				return errors.New("--node is for one existing node; omit --uses, --role and --group")
			}
			tokens, authority, err := openTokens(opts)
			if err != nil {
				return err
			}
			if err := checkGroup(cmd.Context(), tokens.Client, info.Group); err != nil {
				return err
			}
			if info.Node != "" {
				if err := hosts.CheckNode(cmd.Context(), tokens.Client, info.Node); err != nil {
					return err
				}
			}
			info.Expiry, info.NoRouter = time.Now().Add(ttl), !router
			return createTokens(cmd.Context(), tokens, authority, info, cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&info.Role, "role", join.RoleNode, "role of the hosts that join: node or master")
	flags.StringVar(&info.Group, "group", "", "node group of the hosts, such as compute or node-config-compute; see ConfigMaps of project openshift-node")
	flags.StringVar(&info.Node, "node", "", "existing node whose host gets new certificates, because the previous ones expired or its address changed")
	flags.DurationVar(&ttl, "ttl", 24*time.Hour, "time until the token expires")
	flags.BoolVar(&router, "router", true, "allow the hosts to run a router; a host with --router gets its credentials")
	flags.IntVar(&info.Uses, "uses", 1, "number of hosts that can join; with --role master, each host has its own token")
	return command
}

// createTokens creates tokens and prints them. Because only one host can use a master token,
// createTokens creates a separate token for each master.
func createTokens(ctx context.Context, tokens hosts.Tokens, authority []byte, info hosts.TokenInfo, out io.Writer) error {
	count := 1
	if info.Role == join.RoleMaster {
		count, info.Uses = info.Uses, 1
	}
	for range count {
		token, err := join.New(authority)
		if err != nil {
			return err
		}
		if err := tokens.Create(ctx, token, info); err != nil {
			return err
		}
		fmt.Fprintln(out, token)
	}
	return nil
}

// checkGroup returns an error if a node group does not exist.
func checkGroup(ctx context.Context, client kubernetes.Interface, group string) error {
	if group == "" {
		return nil
	}
	name := nodegroup.ConfigMapOf(group)
	if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
		return fmt.Errorf("--group %q: %s", group, messages[0])
	}
	list, err := client.CoreV1().ConfigMaps(nodegroup.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list node groups: %w", err)
	}
	var names []string
	for _, configMap := range list.Items {
		if configMap.Name == name {
			return nil
		}
		if strings.HasPrefix(configMap.Name, nodegroup.Prefix) {
			names = append(names, configMap.Name)
		}
	}
	return fmt.Errorf("--group %q: the project %s has no ConfigMap %s; use one of %s, or create it", group, nodegroup.Namespace, name, strings.Join(names, ", "))
}

func listTokens(cmd *cobra.Command, opts *options) error {
	tokens, _, err := openTokens(opts)
	if err != nil {
		return err
	}
	list, err := tokens.List(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tROLE\tGROUP\tFOR\tEXPIRES\tUSES\tSTATE\tNODES")
	for _, t := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n",
			t.ID, t.Role, t.Group, t.Node, t.Expiry.Local().Format(time.DateTime), len(t.Nodes), t.Uses, t.State(), strings.Join(t.Nodes, ","))
	}
	return table.Flush()
}

// openTokens returns the join tokens of this master's cluster, and the cluster's PEM-encoded CA
// certificate.
func openTokens(opts *options) (hosts.Tokens, []byte, error) {
	h, err := opts.loadMaster()
	if err != nil {
		return hosts.Tokens{}, nil, err
	}
	config, client, err := connectAdmin(h)
	if err != nil {
		return hosts.Tokens{}, nil, err
	}
	return hosts.Tokens{Client: client}, config.CAData, nil
}

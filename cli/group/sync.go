package group

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	userv1 "github.com/openshift/api/user/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/group/groupsync"
	"github.com/slipway-platform/slipway/internal/ldap"
	"github.com/slipway-platform/slipway/internal/stringsource"
)

// Labels and annotations on groups that were synced from a directory, as in OpenShift 3.
const (
	ldapHostLabel = "openshift.io/ldap.host"
	ldapURLKey    = "openshift.io/ldap.url"
	ldapUIDKey    = "openshift.io/ldap.uid"
	ldapTimeKey   = "openshift.io/ldap.sync-time"
)

// ldapGroups holds the state of `oc adm groups sync` and `oc adm groups prune`.
type ldapGroups struct {
	genericiooptions.IOStreams
	configFile, whitelist, blacklist, kind string
	confirm                                bool

	directory *groupsync.Directory
	groups    dynamic.ResourceInterface
	now       func() time.Time
}

// NewGroupsSync returns the `oc adm groups sync` command.
func NewGroupsSync(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &ldapGroups{IOStreams: streams, now: time.Now}
	command := &cobra.Command{
		Use: "sync [--type=TYPE] [WHITELIST] [--whitelist=WHITELIST-FILE] --sync-config=CONFIG-FILE [--confirm]", Short: "Sync groups with records from an external provider",
		Long: `Sync groups with records from an external provider, an LDAP directory. The command creates groups in the cluster, and updates the users of existing groups from the directory.

Without --confirm, the command prints the resulting groups and changes nothing.`,
		Example: `  # Sync all groups with an LDAP server
  oc adm groups sync --sync-config=/path/to/ldap-sync-config.yaml --confirm

  # Sync all groups except those from the blacklist file with an LDAP server
  oc adm groups sync --blacklist=/path/to/blacklist.txt --sync-config=/path/to/ldap-sync-config.yaml --confirm

  # Sync all groups that have been synced before
  oc adm groups sync --type=openshift --sync-config=/path/to/ldap-sync-config.yaml --confirm`,
		DisableFlagsInUseLine: true,
		Run: func(cmd *cobra.Command, args []string) {
			util.CheckErr(o.open(cmd.Context(), factory))
			defer o.directory.Close()
			util.CheckErr(o.sync(cmd.Context(), args))
		},
	}
	o.flags(command)
	command.Flags().StringVar(&o.kind, "type", "ldap", "groups to sync and to filter with the whitelist and blacklist: ldap (all groups in the directory) or openshift (groups that were synced before)")
	return command
}

// NewGroupsPrune returns the `oc adm groups prune` command.
func NewGroupsPrune(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &ldapGroups{IOStreams: streams, now: time.Now}
	command := &cobra.Command{
		Use: "prune [WHITELIST] [--whitelist=WHITELIST-FILE] [--blacklist=BLACKLIST-FILE] --sync-config=CONFIG-FILE [--confirm]", Short: "Remove groups that reference missing records on an external provider",
		Long: `Remove groups that came from an external provider, an LDAP directory, and no longer exist there.

Without --confirm, the command lists the groups and removes nothing.`,
		Example: `  # Prune all orphaned groups
  oc adm groups prune --sync-config=/path/to/ldap-sync-config.yaml --confirm`,
		DisableFlagsInUseLine: true,
		Run: func(cmd *cobra.Command, args []string) {
			util.CheckErr(o.open(cmd.Context(), factory))
			defer o.directory.Close()
			util.CheckErr(o.prune(cmd.Context(), args))
		},
	}
	o.flags(command)
	return command
}

func (o *ldapGroups) flags(command *cobra.Command) {
	command.Flags().StringVar(&o.configFile, "sync-config", "", "path to the sync configuration (kind LDAPSyncConfig)")
	command.Flags().StringVar(&o.whitelist, "whitelist", "", "path to a file with groups to use, one on each line; other groups are ignored")
	command.Flags().StringVar(&o.blacklist, "blacklist", "", "path to a file with groups to ignore, one on each line")
	command.Flags().BoolVar(&o.confirm, "confirm", false, "if true, change groups; otherwise print the changes")
}

// open reads the sync configuration and connects to the directory and the cluster.
func (o *ldapGroups) open(ctx context.Context, factory util.Factory) error {
	if o.configFile == "" {
		return errors.New("--sync-config is required: set it to the file of an LDAPSyncConfig")
	}
	if o.kind != "" && o.kind != "ldap" && o.kind != "openshift" {
		return fmt.Errorf("--type %q must be ldap or openshift", o.kind)
	}
	config, err := groupsync.Read(o.configFile)
	if err != nil {
		return err
	}
	server, err := serverOf(config)
	if err != nil {
		return err
	}
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	o.groups = client.Resource(userv1.GroupVersion.WithResource("groups"))
	o.directory, err = groupsync.Open(ctx, config, server)
	return err
}

// serverOf returns the bind password and TLS settings for a directory's server.
func serverOf(config *legacyv1.LDAPSyncConfig) (ldap.Server, error) {
	password, err := stringsource.Read(config.BindPassword)
	if err != nil {
		return ldap.Server{}, fmt.Errorf("bindPassword: %w", err)
	}
	server := ldap.Server{BindPassword: password, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	if config.CA == "" {
		return server, nil
	}
	content, err := os.ReadFile(config.CA)
	if err != nil {
		return ldap.Server{}, fmt.Errorf("read certificate authority: %w", err)
	}
	server.TLS.RootCAs = x509.NewCertPool()
	if !server.TLS.RootCAs.AppendCertsFromPEM(content) {
		return ldap.Server{}, fmt.Errorf("read certificate authority %q: no certificate in the file", config.CA)
	}
	return server, nil
}

// selectGroups returns the groups whose names are in the whitelist, if one exists, and not in the
// blacklist. The whitelist consists of the arguments and the lines in the whitelist file.
// selectGroups modifies all.
func (o *ldapGroups) selectGroups(all, arguments []string, nameOf func(string) string) ([]string, error) {
	white, err := readList(o.whitelist)
	if err != nil {
		return nil, err
	}
	white = append(white, arguments...)
	black, err := readList(o.blacklist)
	if err != nil {
		return nil, err
	}
	leave := func(name string) bool {
		return len(white) > 0 && !slices.Contains(white, nameOf(name)) || slices.Contains(black, nameOf(name))
	}
	return slices.DeleteFunc(all, leave), nil
}

// readList reads group names from a file. Each line is NAME or group/NAME.
func readList(file string) (lines []string, err error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read group list: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "group/"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// synced returns the cluster's groups that were synced from the directory, keyed by their UIDs in
// the directory.
func (o *ldapGroups) synced(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	list, err := o.groups.List(ctx, metav1.ListOptions{LabelSelector: ldapHostLabel + "=" + o.directory.Host})
	if err != nil {
		return nil, err
	}
	groups := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		group := &list.Items[i]
		if group.GetAnnotations()[ldapURLKey] == o.directory.Address {
			groups[group.GetAnnotations()[ldapUIDKey]] = group
		}
	}
	return groups, nil
}

// sync creates and updates groups. If it cannot sync a group, it continues with the next group, and
// returns all errors at the end.
func (o *ldapGroups) sync(ctx context.Context, arguments []string) error {
	uids, nameOf := []string{}, func(uid string) string { return uid }
	var err error
	if o.kind == "openshift" {
		before, err := o.synced(ctx)
		if err != nil {
			return err
		}
		for uid := range before {
			uids = append(uids, uid)
		}
		slices.Sort(uids)
		nameOf = func(uid string) string { return before[uid].GetName() }
	} else if uids, err = o.directory.UIDs(); err != nil {
		return err
	}
	if uids, err = o.selectGroups(uids, arguments, nameOf); err != nil {
		return err
	}
	var problems []error
	for _, uid := range uids {
		if err := o.syncOne(ctx, uid); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (o *ldapGroups) syncOne(ctx context.Context, uid string) error {
	source, err := o.directory.Group(uid)
	if err != nil {
		return err
	}
	group, err := o.groups.Get(ctx, source.Name, metav1.GetOptions{})
	exists := err == nil
	switch {
	case apierrors.IsNotFound(err):
		group = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "user.openshift.io/v1", "kind": "Group"}}
		group.SetName(source.Name)
	case err != nil:
		return err
	case group.GetAnnotations()[ldapUIDKey] != uid || group.GetAnnotations()[ldapURLKey] != o.directory.Address:
		return fmt.Errorf("group %q already exists, but was not synced from %q in %s; to sync to another name, set groupUIDNameMapping", source.Name, uid, o.directory.Address)
	}
	labels, annotations := group.GetLabels(), group.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[ldapHostLabel] = o.directory.Host
	annotations[ldapURLKey], annotations[ldapUIDKey] = o.directory.Address, uid
	annotations[ldapTimeKey] = o.now().UTC().Format(time.RFC3339)
	group.SetLabels(labels)
	group.SetAnnotations(annotations)
	if err := unstructured.SetNestedStringSlice(group.Object, source.Users, "users"); err != nil {
		return err
	}
	if !o.confirm {
		return printYAML(o.Out, group)
	}
	if exists {
		_, err = o.groups.Update(ctx, group, metav1.UpdateOptions{})
	} else {
		_, err = o.groups.Create(ctx, group, metav1.CreateOptions{})
	}
	if err == nil {
		fmt.Fprintf(o.Out, "group/%s\n", source.Name)
	}
	return err
}

func printYAML(out io.Writer, group *unstructured.Unstructured) error {
	content, err := yaml.Marshal(group.Object)
	if err == nil {
		_, err = fmt.Fprintf(out, "---\n%s", content)
	}
	return err
}

// prune deletes groups that were synced from the directory but no longer exist in it.
func (o *ldapGroups) prune(ctx context.Context, arguments []string) error {
	before, err := o.synced(ctx)
	if err != nil {
		return err
	}
	uids := []string{}
	for uid := range before {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	if uids, err = o.selectGroups(uids, arguments, func(uid string) string { return before[uid].GetName() }); err != nil {
		return err
	}
	var problems []error
	for _, uid := range uids {
		_, err := o.directory.Group(uid)
		if !errors.Is(err, groupsync.ErrNoGroup) {
			continue // the group exists, or the directory did not respond
		}
		name := before[uid].GetName()
		if o.confirm {
			if err := o.groups.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		fmt.Fprintf(o.Out, "group/%s\n", name)
	}
	return errors.Join(problems...)
}

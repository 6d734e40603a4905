package command

import (
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

// etcdutlTimeout is the maximum time to wait for the lock on a database that another process uses.
const etcdutlTimeout = 10 * time.Second

// etcdutlCommand returns the command that runs etcd's own tool for database files.
func etcdutlCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "etcdutl COMMAND",
		Short: "Run etcd's program etcdutl on files of its database",
		Long: "Run etcd's program etcdutl on files of its database: check a snapshot, hash or defragment the data directory of a stopped\n" +
			"master, or write a snapshot to a new data directory. --data-dir is the data directory of etcd, by default this master's.\n" +
			"SLIPWAY_DATA_DIR names another data directory of Slipway. If the program is called etcdutl, it runs this command.",
		Example:            "  slipway etcdutl snapshot status /backup/etcd.db -w table\n  slipway etcdutl defrag",
		GroupID:            "look",
		DisableFlagParsing: true,
	}
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && (args[0] == "defrag" || args[0] == "migrate") && !hasFlag(args, "data-dir") {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			args = append(args, "--data-dir="+h.Master.EtcdDirectory())
		}
		program := newEtcdutl()
		program.SetArgs(args)
		program.SetOut(cmd.OutOrStdout())
		program.SetErr(cmd.ErrOrStderr())
		return program.ExecuteContext(cmd.Context())
	}
	return command
}

// newEtcdutl returns the etcdutl command. It builds the root command itself, because upstream's
// root command is in a main package. Package etcdutl stores the flags' values in variables.
func newEtcdutl() *cobra.Command {
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for files of etcd", SilenceUsage: true, SilenceErrors: true}
	flags := root.PersistentFlags()
	flags.DurationVar(&etcdutl.FlockTimeout, "timeout", etcdutlTimeout, "time to wait for the database lock; 0: no limit")
	flags.StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "output format: fields, json, protobuf, simple, table")
	root.AddCommand(
		etcdutl.NewDefragCommand(),
		etcdutl.NewSnapshotCommand(),
		etcdutl.NewHashKVCommand(),
		etcdutl.NewVersionCommand(),
		etcdutl.NewMigrateCommand(),
	)
	return root
}

package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func flexvolumeRemoveCommand(opts *options) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:   "remove DRIVER",
		Short: "Remove a driver from this host",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			driver := args[0]
			usage := flexvolume.UsageOf(h.Node.VolumeDirectory, driver)
			if usage != (flexvolume.Usage{}) && !force {
				return fmt.Errorf("remove FlexVolume driver %q: pods on this host use %d of its volumes, and %d of its devices are attached; delete the pods, "+
					"or use --force: running pods keep their volumes, which Slipway unmounts with a copy of the driver", driver, usage.Pods, usage.Devices)
			}
			remaining, err := flexvolume.Remove(h.Node.VolumePluginDir(), driver)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", driver)
			for _, file := range remaining {
				fmt.Fprintf(cmd.OutOrStdout(), "kept %s, which is not the driver\n", file)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&force, "force", false, "remove the driver even if its volumes are in use")
	return command
}

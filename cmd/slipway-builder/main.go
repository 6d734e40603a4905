// Command slipway-builder runs in the pods of builds. It is a separate program because it contains
// BuildKit, which no other program of Slipway needs. See package builder.
package main

import "github.com/slipway-platform/slipway/builder"

func main() { builder.Main() }

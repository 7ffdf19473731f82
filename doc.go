// Package phuxagent is the map of the house; it holds no code.
package phuxagent

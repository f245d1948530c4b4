// Package ports declares what the activities need from outside: the database by subject, tools and documents, policies, models, budgets, and
// Temporal. It contains no rule. Programs connect the ports with the packages that implement them.
package ports

//! What endpointd knows and wants: compact objects it reads, complete objects it writes.

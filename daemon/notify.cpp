// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.hpp"

#include <systemd/sd-daemon.h>

#include "daemon/clock.hpp"

namespace spanker::daemon {

void notify_ready(loop& home, const std::string& status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str());
    sd_event_set_watchdog(home.get(), true);
}

void notify_status(const std::string& status) { sd_notifyf(0, "STATUS=%s", status.c_str()); }

// MONOTONIC_USEC is what Type=notify-reload wants and Type=notify ignores.
void notify_reloading()
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
               static_cast<unsigned long long>(monotonic_ns() / 1000));
}

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

}  // namespace spanker::daemon
